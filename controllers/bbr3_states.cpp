// BBR version 3's state machine, sections 5.3 and 5.4 of the draft.
#include <algorithm>

#include "controllers/bbr3.hpp"

namespace quicgym {

namespace {

constexpr std::uint64_t kMostSlopeDoublings = 30;  // 5.3.3.9, RaiseInflightLongtermSlope

}  // namespace

// ---- Startup and Drain -----------------------------------------------------------------------

// 5.3.1.2.
void Bbr3::reset_full_bandwidth() {
    full_bandwidth_ = 0.0;
    full_bandwidth_rounds_ = 0;
    full_bandwidth_now_ = false;
}

// 5.3.1.2, CheckFullBWReached. An ACK without a valid sample of the rate tells nothing of its growth.
void Bbr3::check_full_bandwidth(const AckEvent& event) {
    const double rate = event.sample.delivery_rate;
    if (full_bandwidth_now_ || !round_start_ || sample_limited_ || rate <= 0.0) return;
    if (rate >= full_bandwidth_ * parameters_.full_bandwidth_growth) {
        reset_full_bandwidth();
        full_bandwidth_ = rate;
        return;
    }
    full_bandwidth_now_ = ++full_bandwidth_rounds_ >= parameters_.full_bandwidth_rounds;
    full_bandwidth_reached_ = full_bandwidth_reached_ || full_bandwidth_now_;
}

// 5.3.1.1, CheckStartupDone, and 5.3.1.3, CheckStartupHighLoss. A round of loss ends with a packet that was
// sent after its first loss: recovery has lasted a full round then.
void Bbr3::check_startup_done(const AckEvent& event) {
    if (loss_round_start_) {
        const auto ranges = static_cast<double>(loss_ranges_in_round_);
        const bool high_loss = ranges >= parameters_.startup_loss_ranges && is_too_high(event);
        if (high_loss && !full_bandwidth_reached_) {
            undo_state_ = State::startup;
            full_bandwidth_reached_ = full_bandwidth_now_ = true;
            inflight_longterm_ =
                std::max({bdp_multiple(bandwidth_, 1.0), inflight_latest_, min_window_bytes_});
        }
        loss_ranges_in_round_ = 0;
        marked_bytes_in_round_ = 0;
    }
    if (state_ != State::startup || !full_bandwidth_reached_) return;
    state_ = State::drain;  // 5.3.2, EnterDrain
    drain_start_round_ = round_count_;
}

// 5.3.2, CheckDrainDone.
void Bbr3::check_drain_done(const AckEvent& event) {
    if (state_ != State::drain) return;
    constexpr std::uint64_t kMostRounds = 3;
    if (event.in_flight_bytes <= inflight(bandwidth_, 1.0) || round_count_ > drain_start_round_ + kMostRounds)
        start_down(event.now);
}

// ---- ProbeBW, 5.3.3.9 ------------------------------------------------------------------------

void Bbr3::start_down(Time now) {
    reset_congestion_signals();
    probe_up_acked_per_datagram_ = kUnbounded;
    rounds_since_probe_ = drawn_rounds_;
    probe_wait_ = drawn_wait_;
    wait_is_drawn_ = false;
    cycle_start_ = now;
    ack_phase_ = AckPhase::probe_stopping;
    start_round();
    state_ = State::down;
}

void Bbr3::start_refill() {
    reset_short_term_model();
    probe_up_rounds_ = 0;
    probe_up_acked_ = 0;
    previous_probe_precautionary_ = false;
    ack_phase_ = AckPhase::refilling;
    start_round();
    state_ = State::refill;
}

void Bbr3::start_up(const AckEvent& event) {
    ack_phase_ = AckPhase::probe_starting;
    start_round();
    reset_full_bandwidth();
    full_bandwidth_ = event.sample.delivery_rate;
    state_ = State::up;
    raise_longterm_slope();
}

// UpdateProbeBWCyclePhase.
void Bbr3::update_cycle(const AckEvent& event) {
    if (!full_bandwidth_reached_ || adapt_long_term_model(event)) return;
    switch (state_) {
        case State::down:
            if (!start_refill_if_due(event.now) && is_time_to_cruise(event)) state_ = State::cruise;
            break;
        case State::cruise:
            start_refill_if_due(event.now);
            break;
        case State::refill:
            if (!round_start_) break;
            is_probe_sample_ = true;
            start_up(event);
            break;
        case State::up:
            if (!is_time_to_go_down(event)) break;
            previous_probe_too_high_ = false;
            start_down(event.now);
            break;
        default:
            break;
    }
}

// AdaptLongTermModel: which samples are a probe's, and bounds that a probe without much loss raises. Returns
// true when it has decided a transition.
bool Bbr3::adapt_long_term_model(const AckEvent& event) {
    if (ack_phase_ == AckPhase::probe_starting && round_start_) ack_phase_ = AckPhase::probe_feedback;
    if (ack_phase_ == AckPhase::probe_stopping && round_start_) {
        is_probe_sample_ = false;
        ack_phase_ = AckPhase::none;
        if (in_probe_bw() && !sample_limited_) advance_max_bandwidth_filter();
        // 5.3.3.6, acceleration: the cautious probe went well.
        if (in_probe_bw() && previous_probe_precautionary_ && !previous_probe_too_high_) {
            start_refill();
            return true;
        }
    }
    if (is_too_high(event) || inflight_longterm_ == kUnbounded) return false;
    inflight_longterm_ = std::max(inflight_longterm_, event.sample.in_flight_at_send_bytes);
    if (state_ == State::up) probe_longterm_upward(event);
    return false;
}

// 5.3.3.8.3, IsTimeToProbeBW and IsRenoCoexistenceProbeTime.
bool Bbr3::start_refill_if_due(Time now) {
    const double packets = static_cast<double>(target_in_flight()) / static_cast<double>(max_datagram_bytes_);
    const double rounds = std::min(packets, parameters_.reno_rounds);
    if (now <= cycle_start_ + probe_wait_ && static_cast<double>(rounds_since_probe_) < rounds) return false;
    start_refill();
    return true;
}

// 5.3.3.1: there is headroom, and no queue.
bool Bbr3::is_time_to_cruise(const AckEvent& event) const {
    return event.in_flight_bytes <= inflight_with_headroom() &&
           event.in_flight_bytes <= inflight(max_bandwidth(), 1.0);
}

// 5.3.3.7.
bool Bbr3::is_time_to_go_down(const AckEvent& event) {
    if (previous_probe_too_high_ && event.in_flight_bytes >= inflight_longterm_) {
        previous_probe_precautionary_ = true;
        return true;
    }
    const bool window_limits = window_was_full_ || window_was_full_before_;
    if (window_limits && window_bytes_ >= inflight_longterm_) {
        reset_full_bandwidth();  // the bound, not the path, holds the rate
        full_bandwidth_ = event.sample.delivery_rate;
        return false;
    }
    return full_bandwidth_now_;
}

std::uint64_t Bbr3::inflight_with_headroom() const {
    if (inflight_longterm_ == kUnbounded) return kUnbounded;
    const auto share =
        static_cast<std::uint64_t>(parameters_.headroom * static_cast<double>(inflight_longterm_));
    const std::uint64_t headroom = std::max(max_datagram_bytes_, share);
    return std::max(inflight_longterm_ - std::min(inflight_longterm_, headroom), min_window_bytes_);
}

// 5.3.3.5: by 1, 2, 4 and so on datagrams in each round.
void Bbr3::raise_longterm_slope() {
    const std::uint64_t growth = std::uint64_t{1} << probe_up_rounds_;
    probe_up_rounds_ = std::min(probe_up_rounds_ + 1, kMostSlopeDoublings);
    probe_up_acked_per_datagram_ = std::max(window_bytes_ / growth, max_datagram_bytes_);
}

// ProbeInflightLongtermUpward.
void Bbr3::probe_longterm_upward(const AckEvent& event) {
    const bool window_limits = window_was_full_ || window_was_full_before_;
    if (!window_limits || window_bytes_ < inflight_longterm_) return;
    probe_up_acked_ += event.newly_acked_bytes;
    const std::uint64_t datagrams = probe_up_acked_ / probe_up_acked_per_datagram_;
    probe_up_acked_ -= datagrams * probe_up_acked_per_datagram_;
    inflight_longterm_ += datagrams * max_datagram_bytes_;
    if (round_start_) raise_longterm_slope();
}

// ---- ProbeRTT, 5.3.4.3 -----------------------------------------------------------------------

// CheckProbeRTT. The window is saved after the change of state, as the draft has it: a loss recovery's stays.
void Bbr3::check_probe_rtt(const AckEvent& event) {
    if (state_ != State::probe_rtt && probe_rtt_expired_ && !idle_restart_) {
        state_ = State::probe_rtt;
        save_window();
        probe_rtt_done_time_ = 0;
        ack_phase_ = AckPhase::probe_stopping;
        start_round();
        limited_.begin(event.now);
    }
    if (state_ == State::probe_rtt) handle_probe_rtt(event);
    if (event.sample.delivered_bytes > 0) idle_restart_ = false;
}

void Bbr3::handle_probe_rtt(const AckEvent& event) {
    limited_.extend(event.delivered_bytes, event.in_flight_bytes);
    if (probe_rtt_done_time_ == 0) {
        if (event.in_flight_bytes > probe_rtt_window()) return;
        probe_rtt_done_time_ = event.now + probe_rtt_duration_;
        probe_rtt_round_done_ = false;
        start_round();
        return;
    }
    probe_rtt_round_done_ = probe_rtt_round_done_ || round_start_;
    if (probe_rtt_round_done_) check_probe_rtt_done(event.now);
}

// With 5.3.4.4, ExitProbeRTT: the next probe for bandwidth is a whole cycle away, but nothing is left to
// drain.
void Bbr3::check_probe_rtt_done(Time now) {
    if (probe_rtt_done_time_ == 0 || now <= probe_rtt_done_time_) return;
    restore_window();
    leave_probe_rtt(now);
}

void Bbr3::leave_probe_rtt(Time now) {
    probe_rtt_minimum_time_ = now;
    reset_short_term_model();
    if (full_bandwidth_reached_) {
        start_down(now);
        state_ = State::cruise;
    } else {
        state_ = State::startup;
    }
}

}  // namespace quicgym
