// NewReno as QUIC specifies it, RFC 9002 section 7 and appendix B, with HyStart++, RFC 9406.
#pragma once

#include "controllers/catalogue.hpp"
#include "controllers/controller.hpp"
#include "controllers/slow_start.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

struct NewRenoParameters {
    double loss_reduction_factor = 0.5;
    double slow_start = static_cast<double>(SlowStart::hystart_plus_plus);
    double pacing_gain = 1.25;
    double slow_start_pacing_gain = 2.0;
    // 0 or 1: as TCPs do that do not follow RFC 9002.
    double growth_per_ack = 0.0;
    double reduction_per_ack = 0.0;
    double flight_size = 0.0;
    double initial_window_packets = 10.0;
};

class NewReno final : public LossBasedController {
public:
    NewReno(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<NewReno>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;
    void scale_window(double factor, bool ends_slow_start) override;

private:
    bool in_slow_start() const { return window_bytes_ < slow_start_threshold_; }
    void slow_start(const AckEvent& event, bool may_grow);
    void congestion_event(Time now, Time sent_time, std::uint64_t flight_bytes);
    void update_pacing_rate();

    NewRenoParameters parameters_;
    std::uint64_t slow_start_threshold_;
    std::uint64_t acked_bytes_ = 0;  // since the window last grew in congestion avoidance
    RecoveryPeriod recovery_;
    WindowPacing pacing_;
    SlowStartExit slow_start_exit_;
    Time last_reduction_ = -1;  // with reduction_per_ack
};

ControllerSpecification newreno_specification();

}  // namespace quicgym
