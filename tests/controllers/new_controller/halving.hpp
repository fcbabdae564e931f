// One packet more per round, half on loss: the example of docs/how-to/controllers.md.
#pragma once

#include "controllers/controller.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

struct HalvingParameters {
    double decrease = 0.5;
};

class Halving final : public Controller {
public:
    Halving(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Halving>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;

private:
    void set_window(std::uint64_t window_bytes);

    HalvingParameters parameters_;
    RecoveryPeriod recovery_;
    WindowPacing pacing_;
};

}  // namespace quicgym
