// TCP Vegas, Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet"
// (IEEE JSAC 13:8, 1995; "the paper" below), for QUIC.
#pragma once

#include "controllers/controller.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

struct VegasParameters {
    double alpha = 2.0;
    double beta = 4.0;
    double gamma = 1.0;
    double loss_reduction_factor = 0.5;
    double pacing_gain = 1.25;
    double slow_start_pacing_gain = 2.0;
};

class Vegas final : public Controller {
public:
    Vegas(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Vegas>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;
    void take_over(std::uint64_t window_bytes, bool slow_start) override;

private:
    bool in_slow_start() const { return window_ < slow_start_threshold_; }
    void end_round(bool app_limited);
    void congestion_event(Time now, Time sent_time);
    void publish();

    VegasParameters parameters_;
    const double packets_per_byte_;

    // Windows in packets of the maximum datagram size.
    double window_;
    double slow_start_threshold_;
    double difference_packets_ = 0.0;  // of the last round that was measured
    Time base_rtt_ = 0;
    Time round_min_rtt_ = kNever;
    bool growing_round_ = false;  // slow start: every other round; the handshake is none
    RecoveryPeriod recovery_;
    WindowPacing pacing_;
};

}  // namespace quicgym
