// BBR version 3, draft-ietf-ccwg-bbr-06, "the draft" below. A comment "5.3.1" names the draft's section.
// bbr3.cpp has events and control parameters (5.2, 5.6), bbr3_states.cpp the state machine (5.3, 5.4),
// bbr3_model.cpp the model of the path (5.5). docs/controllers/bbr3.md lists what the draft
// leaves open.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "controllers/bbr3_parameters.hpp"
#include "controllers/bbr_filters.hpp"
#include "controllers/controller.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

class Bbr3 final : public Controller {
public:
    Bbr3(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Bbr3>(*this); }

    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override;
    void on_packet_lost(const LostPacket& packet) override;
    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_spurious_loss(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;

private:
    enum class State : std::uint8_t { startup, drain, down, cruise, refill, up, probe_rtt };
    // Which stage of probing for bandwidth the arriving ACKs belong to, 2.14.
    enum class AckPhase : std::uint8_t { none, refilling, probe_starting, probe_feedback, probe_stopping };
    struct Gains {
        double pacing;
        double cwnd;
    };

    static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();
    static constexpr double kUnboundedRate = std::numeric_limits<double>::infinity();

    // ---- bbr3.cpp: events and control parameters ----
    void start(const AckEvent& event);
    void take_in(const AckEvent& event);
    void draw_probe_wait(Random& random);
    Gains gains() const;
    void set_pacing_rate(double gain);
    void set_window(const AckEvent& event);
    void save_window();
    void restore_window();
    double bdp_bytes(double bandwidth) const { return bandwidth * min_rtt_seconds_; }
    std::uint64_t bdp_multiple(double bandwidth, double gain) const;
    std::uint64_t with_budget(std::uint64_t in_flight_bytes) const;
    std::uint64_t inflight(double bandwidth, double gain) const;
    std::uint64_t probe_rtt_window() const;
    std::uint64_t volume_cap() const;
    void apply_parameters(const Bbr3Parameters& parameters);

    // ---- bbr3_states.cpp: the state machine ----
    bool in_probe_bw() const { return state_ >= State::down && state_ <= State::up; }
    bool is_probing() const {
        return state_ == State::startup || state_ == State::refill || state_ == State::up;
    }
    void reset_full_bandwidth();
    void check_full_bandwidth(const AckEvent& event);
    void check_startup_done(const AckEvent& event);
    void check_drain_done(const AckEvent& event);
    void start_down(Time now);
    void start_refill();
    void start_up(const AckEvent& event);
    void update_cycle(const AckEvent& event);
    bool adapt_long_term_model(const AckEvent& event);
    bool start_refill_if_due(Time now);
    bool is_time_to_cruise(const AckEvent& event) const;
    bool is_time_to_go_down(const AckEvent& event);
    std::uint64_t inflight_with_headroom() const;
    void raise_longterm_slope();
    void probe_longterm_upward(const AckEvent& event);
    void check_probe_rtt(const AckEvent& event);
    void handle_probe_rtt(const AckEvent& event);
    void leave_probe_rtt(Time now);
    void check_probe_rtt_done(Time now);

    // ---- bbr3_model.cpp: the model of the path ----
    void start_round() { next_round_delivered_ = delivered_; }
    void update_round();
    void update_latest_delivery_signals(const AckEvent& event);
    void update_congestion_signals(const AckEvent& event);
    void advance_latest_delivery_signals(const AckEvent& event);
    void reset_congestion_signals();
    void reset_short_term_model();
    void adapt_lower_bounds();
    void update_max_bandwidth(const AckEvent& event);
    void advance_max_bandwidth_filter();
    double max_bandwidth() const { return std::max(max_bandwidth_[0], max_bandwidth_[1]); }
    void update_ack_aggregation(const AckEvent& event);
    void update_min_rtt(const AckEvent& event);
    void update_recovery(const AckEvent& event);
    void note_marks(const AckEvent& event);
    void note_congestion();
    void save_state_upon_loss();
    bool is_too_high(std::uint64_t lost_bytes, std::uint64_t in_flight_bytes) const;
    bool is_too_high(const AckEvent& event) const;
    void handle_too_high(Time now, std::uint64_t in_flight_bytes, bool app_limited);
    std::uint64_t in_flight_at_loss(const LostPacket& packet) const;
    std::uint64_t target_in_flight() const;

    Bbr3Parameters parameters_;
    // The parameters, converted to the units that are used for every packet.
    std::uint64_t min_window_bytes_ = 0;
    std::uint64_t extra_acked_window_rounds_ = 0;
    Time probe_rtt_interval_ = 0;
    Time probe_rtt_duration_ = 0;
    Time min_rtt_window_ = 0;

    // The state machine.
    State state_ = State::startup;
    AckPhase ack_phase_ = AckPhase::none;
    bool started_ = false;
    bool full_bandwidth_reached_ = false;
    bool full_bandwidth_now_ = false;
    bool idle_restart_ = false;
    bool app_limited_ = false;  // the connection, as of the last ACK
    bool is_probe_sample_ = false;
    bool previous_probe_too_high_ = false;
    bool previous_probe_precautionary_ = false;
    int full_bandwidth_rounds_ = 0;
    double full_bandwidth_ = 0.0;
    std::uint64_t drain_start_round_ = 0;
    Time cycle_start_ = 0;
    Time probe_wait_ = 0;
    std::uint64_t rounds_since_probe_ = 0;
    std::uint64_t probe_up_rounds_ = 0;
    std::uint64_t probe_up_acked_ = 0;
    std::uint64_t probe_up_acked_per_datagram_ = kUnbounded;

    // Drawn with an ACK, which brings the random source, for the next time that it is asked for: a loss or a
    // packet sent may ask, too.
    bool wait_is_drawn_ = false;
    Time drawn_wait_ = 0;
    std::uint64_t drawn_rounds_ = 0;

    // Rounds.
    bool round_start_ = false;
    bool loss_round_start_ = false;
    std::uint64_t delivered_ = 0;        // C.delivered
    std::uint64_t prior_delivered_ = 0;  // RS.prior_delivered
    std::uint64_t next_round_delivered_ = 0;
    std::uint64_t loss_round_delivered_ = 0;
    std::uint64_t round_count_ = 0;
    bool window_was_full_ = false;  // in this round, and in the one before
    bool window_was_full_before_ = false;

    // Long-term model.
    double max_bandwidth_[2] = {0.0, 0.0};  // of the previous ProbeBW cycle and of this one
    std::uint64_t inflight_longterm_ = kUnbounded;
    // Short-term model.
    double bandwidth_shortterm_ = kUnboundedRate;
    std::uint64_t inflight_shortterm_ = kUnbounded;
    double bandwidth_latest_ = 0.0;
    std::uint64_t inflight_latest_ = 0;
    double bandwidth_ = 0.0;  // BBR.bw

    // Losses.
    RecoveryPeriod recovery_;
    bool loss_in_round_ = false;
    std::uint64_t loss_ranges_in_round_ = 0;
    std::uint64_t latest_lost_number_ = 0;
    std::uint64_t marked_bytes_ = 0;  // ECN-CE, not yet noted
    std::uint64_t marked_bytes_in_round_ = 0;
    std::uint64_t prior_window_bytes_ = 0;
    std::optional<State> undo_state_;  // startup or up, which loss has ended
    double undo_bandwidth_shortterm_ = 0.0;
    std::uint64_t undo_inflight_shortterm_ = 0;
    std::uint64_t undo_inflight_longterm_ = 0;

    AckAggregation ack_aggregation_;

    // RTT and ProbeRTT.
    double min_rtt_seconds_ = 0.0;  // of min_rtt_
    Time min_rtt_ = kNever;
    Time min_rtt_time_ = 0;
    Time probe_rtt_minimum_ = kNever;
    Time probe_rtt_minimum_time_ = 0;
    Time probe_rtt_done_time_ = 0;  // 0: not yet down to its window
    bool probe_rtt_expired_ = false;
    bool probe_rtt_round_done_ = false;
    bool sample_limited_ = false;  // RS.is_app_limited
    SelfLimitedSpan limited_;
};

}  // namespace quicgym
