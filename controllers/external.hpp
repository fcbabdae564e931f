// A window and a pacing rate that somebody outside sets, such as an agent.
#pragma once

#include "controllers/controller.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

// Wide enough for any path of the scenarios, and small enough that no choice exhausts the memory of a
// simulation, whose packets in flight are all kept.
inline constexpr double kExternalSmallestWindow = 2400.0;  // bytes
inline constexpr double kExternalLargestWindow = 1e8;
inline constexpr double kExternalSlowestRate = 1e3;  // bytes per second
inline constexpr double kExternalFastestRate = 1e10;

struct ExternalParameters {
    double window_bytes = 0.0;
    double pacing_rate = 0.0;
};

// Reacts to nothing by itself: not to loss, not to ECN, not to persistent congestion.
class External final : public Controller {
public:
    External(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<External>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent&) override {}
    void on_persistent_congestion(Time) override {}
    void on_ecn(const EcnEvent&) override {}
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;

private:
    void apply();

    ExternalParameters parameters_;
    WindowPacing pacing_;
    Time min_rtt_ = 0;
};

}  // namespace quicgym
