// Copa, Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet"
// (NSDI 2018; "the paper" below), for QUIC.
#pragma once

#include <functional>

#include "controllers/controller.hpp"
#include "controllers/window_pacing.hpp"
#include "controllers/windowed_extreme.hpp"

namespace quicgym {

struct CopaParameters {
    double delta = 0.5;
    double competitive_mode = 1.0;  // 0 or 1
    double min_rtt_window_s = 10.0;
    double standing_window_rtts = 0.5;
    double nearly_empty_rtts = 5.0;
    double nearly_empty_share = 0.1;
    double velocity_rounds = 3.0;
    double pacing_gain = 2.0;
    double loss_response = 1.0;  // 0 or 1
};

class Copa final : public Controller {
public:
    Copa(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Copa>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;

private:
    enum class Direction : std::uint8_t { none, up, down };

    bool has_rtt() const { return standing_rtt_.best() != kNever; }
    // The paper's d_q = RTTstanding - RTTmin.
    Time queueing_delay() const { return has_rtt() ? standing_rtt_.best() - min_rtt_.best() : 0; }
    // Equation 1: the rate window / RTTstanding is at most 1 / (delta * d_q), in packets per second.
    bool is_below_target() const;

    void update_delays(const AckEvent& event);
    void update_mode(const AckEvent& event);
    void end_round();
    void turn_to(Direction direction);
    void respond_to_loss(const AckEvent& event);
    void congestion_event(Time now, Time sent_time);
    void publish();

    CopaParameters parameters_;
    const double packets_per_byte_;

    // Windows in packets of the maximum datagram size.
    double window_;
    bool slow_start_ = true;

    // The paper's RTTstanding, RTTmin and RTTmax.
    WindowedExtreme<Time, std::less<>> standing_rtt_{kNever};
    WindowedExtreme<Time, std::less<>> min_rtt_{kNever};
    WindowedExtreme<Time, std::greater<>> max_rtt_{0};

    Direction direction_ = Direction::none;
    double rounds_in_direction_ = 0.0;
    double round_start_window_;
    double velocity_ = 1.0;  // the paper's v

    bool competitive_ = false;
    Time nearly_empty_time_ = 0;          // when the queue was last nearly empty
    double highest_delivery_rate_ = 0.0;  // bytes per second
    double inverse_delta_;                // 1 / delta as it is in force, in packets
    RecoveryPeriod recovery_;

    // Since the loss rate was last judged.
    Time judged_time_ = 0;
    std::uint64_t acked_packets_ = 0;
    std::uint64_t lost_packets_ = 0;
};

}  // namespace quicgym
