// Prague congestion control, draft-briscoe-iccrg-prague-congestion-control-04 ("the draft" below), for QUIC:
// the response to marks of a low-latency, scalable bottleneck (L4S, RFC 9330 and RFC 9331).
#pragma once

#include "controllers/controller.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

struct PragueParameters {
    double alpha_gain = 1.0 / 16.0;
    double virtual_rtt_ms = 25.0;
    double transition_rounds = 500.0;
    double loss_reduction_factor = 0.5;
    double pacing_gain = 1.0;
    double slow_start_pacing_gain = 2.0;
};

class Prague final : public Controller {
public:
    Prague(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Prague>(*this); }

    bool wants_l4s() const override { return true; }
    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;
    void on_ack_standing_by(const AckEvent& event) override;
    void take_over(std::uint64_t window_bytes, bool slow_start) override;

private:
    // A round trip of its own: over when a packet that was sent after its begin is acknowledged, and the
    // virtual RTT has passed.
    struct VirtualRound {
        Time begin = 0;
        bool is_over(Time now, Time sent_time, Time virtual_rtt) const {
            return sent_time > begin && now - begin >= virtual_rtt;
        }
    };

    bool in_slow_start() const { return window_ < slow_start_threshold_; }
    bool has_reduced_rtt_dependence() const { return rounds_ >= parameters_.transition_rounds; }
    Time virtual_rtt() const;
    void update_alpha(const AckEvent& event);
    void grow(double unmarked_packets);
    void publish();

    PragueParameters parameters_;

    // Windows in packets of the maximum datagram size.
    double window_;
    double slow_start_threshold_;

    Time smoothed_rtt_ = 0;
    double rounds_ = 0.0;  // packet-timed, so far

    // Section 2.3.2. Alpha is 1, and not updated, until the first mark.
    double alpha_ = 1.0;
    bool has_marks_ = false;
    VirtualRound alpha_round_;
    double acked_packets_ = 0.0;         // in this round
    double marked_packets_ = 0.0;        // in this round
    double newly_marked_packets_ = 0.0;  // by the ACK frame whose on_ack is still to come

    // Section 2.4.2, the state "congestion window reduced".
    bool reduced_ = false;
    VirtualRound reduced_round_;
    double window_before_reduction_ = 0.0;

    RecoveryPeriod recovery_;  // after a loss
    WindowPacing pacing_;
};

}  // namespace quicgym
