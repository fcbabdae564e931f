// Any controller, whose window and pacing rate somebody outside scales, as Orca does with CUBIC.
#pragma once

#include "controllers/decorator.hpp"

namespace quicgym {

inline constexpr char kWindowFactor[] = "window_factor";
inline constexpr char kPacingFactor[] = "pacing_factor";

struct ScaledParameters {
    double window_factor = 1.0;
    double pacing_factor = 1.0;
};

// Two parameters beside the inner controller's: factors from 1/16 to 16 on the window and on the pacing rate
// that it has decided. At 1 it is that controller. Two datagrams are the least window.
class Scaled final : public Decorator {
public:
    explicit Scaled(std::unique_ptr<Controller> inner);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Scaled>(*this); }

    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;

private:
    void publish() override;

    ScaledParameters factors_;
};

}  // namespace quicgym
