// BBR version 3's model of the path, section 5.5 of the draft.
#include <algorithm>

#include "controllers/bbr3.hpp"

namespace quicgym {

// ---- rounds and delivery ---------------------------------------------------------------------

// 5.5.1, UpdateRound. Rounds begin anew with some transitions, so that they are not those of AckEvent.
void Bbr3::update_round() {
    round_start_ = prior_delivered_ >= next_round_delivered_;
    if (!round_start_) return;
    start_round();
    ++round_count_;
    ++rounds_since_probe_;
    window_was_full_before_ = window_was_full_;
    window_was_full_ = false;
}

// 5.5.10.3.
void Bbr3::update_latest_delivery_signals(const AckEvent& event) {
    bandwidth_latest_ = std::max(bandwidth_latest_, event.sample.delivery_rate);
    inflight_latest_ = std::max(inflight_latest_, event.sample.delivered_bytes);
    loss_round_start_ = prior_delivered_ >= loss_round_delivered_;
    if (loss_round_start_) loss_round_delivered_ = delivered_;
}

void Bbr3::advance_latest_delivery_signals(const AckEvent& event) {
    if (!loss_round_start_) return;
    bandwidth_latest_ = event.sample.delivery_rate;
    inflight_latest_ = event.sample.delivered_bytes;
}

void Bbr3::reset_congestion_signals() {
    loss_in_round_ = false;
    bandwidth_latest_ = 0.0;
    inflight_latest_ = 0;
}

// 5.5.5, UpdateMaxBw. Samples that the application or ProbeRTT limited count only when they are higher.
void Bbr3::update_max_bandwidth(const AckEvent& event) {
    update_round();
    const double rate = event.sample.delivery_rate;
    if (rate > 0.0 && (rate >= max_bandwidth() || !sample_limited_))
        max_bandwidth_[1] = std::max(max_bandwidth_[1], rate);
}

// 5.5.6. A cycle without a sample leaves what is known: the filter forgets only what something replaces.
void Bbr3::advance_max_bandwidth_filter() {
    if (max_bandwidth_[1] == 0.0) return;
    max_bandwidth_[0] = max_bandwidth_[1];
    max_bandwidth_[1] = 0.0;
}

// 5.5.9, UpdateACKAggregation.
void Bbr3::update_ack_aggregation(const AckEvent& event) {
    ack_aggregation_.update(event.now, event.newly_acked_bytes, bandwidth_, window_bytes_, round_count_,
                            full_bandwidth_reached_ ? extra_acked_window_rounds_ : 1);
}

// 5.3.4.3, UpdateMinRTT.
void Bbr3::update_min_rtt(const AckEvent& event) {
    probe_rtt_expired_ = event.now > probe_rtt_minimum_time_ + probe_rtt_interval_;
    if (event.measured_rtt > 0 && (event.measured_rtt < probe_rtt_minimum_ || probe_rtt_expired_)) {
        probe_rtt_minimum_ = event.measured_rtt;
        probe_rtt_minimum_time_ = event.now;
    }
    if (probe_rtt_minimum_ < min_rtt_ || event.now > min_rtt_time_ + min_rtt_window_) {
        min_rtt_ = probe_rtt_minimum_;
        min_rtt_time_ = probe_rtt_minimum_time_;
        if (min_rtt_ != kNever) min_rtt_seconds_ = to_seconds(min_rtt_);
    }
}

// ---- loss ------------------------------------------------------------------------------------

// 5.5.10.2, HandleLostPacket.
void Bbr3::on_packet_lost(const LostPacket& packet) {
    delivered_ = packet.delivered_bytes;
    const bool new_range = loss_ranges_in_round_ == 0 || packet.packet_number != latest_lost_number_ + 1;
    loss_ranges_in_round_ += new_range ? 1 : 0;
    latest_lost_number_ = packet.packet_number;
    note_congestion();
    if (!recovery_.covers(packet.sent_time)) {  // 5.6.4.4, OnEnterFastRecovery
        save_state_upon_loss();
        recovery_.begin(packet.now);
    }
    if (!is_probe_sample_ || !is_too_high(packet.lost_since_sent_bytes, packet.in_flight_at_send_bytes))
        return;
    handle_too_high(packet.now, in_flight_at_loss(packet),
                    packet.app_limited || limited_.covers(packet.sent_time));
}

// 5.5.10.2, NoteLoss. The draft saves the state here, too: at each round of a loss recovery. State that the
// recovery has lowered would then be restored. 5.5.11.1 says "when a loss recovery episode starts".
void Bbr3::note_congestion() {
    if (!loss_in_round_) loss_round_delivered_ = delivered_;
    loss_in_round_ = true;
}

// 3.7: a mark counts as the loss of a datagram, in the round and in its loss rate, because the draft has no
// separate response to marks.
void Bbr3::note_marks(const AckEvent& event) {
    if (marked_bytes_ == 0) return;
    marked_bytes_in_round_ += marked_bytes_;
    loss_ranges_in_round_ += marked_bytes_ / max_datagram_bytes_;
    marked_bytes_ = 0;
    note_congestion();
    if (is_probe_sample_ && is_too_high(event))
        handle_too_high(event.now, event.sample.in_flight_at_send_bytes, sample_limited_);
}

// 5.5.10.2, IsInflightTooHigh.
bool Bbr3::is_too_high(std::uint64_t lost_bytes, std::uint64_t in_flight_bytes) const {
    return static_cast<double>(lost_bytes) >
           static_cast<double>(in_flight_bytes) * parameters_.loss_threshold;
}

bool Bbr3::is_too_high(const AckEvent& event) const {
    return is_too_high(event.sample.lost_bytes + marked_bytes_in_round_,
                       event.sample.in_flight_at_send_bytes);
}

// 5.5.10.2, InflightAtLoss: what was in flight when losses crossed the threshold.
std::uint64_t Bbr3::in_flight_at_loss(const LostPacket& packet) const {
    const double threshold = parameters_.loss_threshold;
    const auto before = static_cast<double>(packet.in_flight_at_send_bytes - packet.size_bytes);
    const auto lost_before = static_cast<double>(packet.lost_since_sent_bytes - packet.size_bytes);
    const double prefix = (threshold * before - lost_before) / (1.0 - threshold);
    return static_cast<std::uint64_t>(std::max(before + prefix, 0.0));
}

// 5.5.10.2, HandleInflightTooHigh.
void Bbr3::handle_too_high(Time now, std::uint64_t in_flight_bytes, bool app_limited) {
    previous_probe_too_high_ = true;
    is_probe_sample_ = false;  // once for each probe
    if (!app_limited) {
        const auto least =
            static_cast<std::uint64_t>(static_cast<double>(target_in_flight()) * parameters_.beta);
        inflight_longterm_ = std::max({in_flight_bytes, least, min_window_bytes_});
    }
    if (state_ != State::up) return;
    undo_state_ = State::up;
    start_down(now);
}

// 5.3.3.8.3, TargetInflight.
std::uint64_t Bbr3::target_in_flight() const {
    return std::min(bdp_multiple(bandwidth_, 1.0), window_bytes_);
}

// 5.5.10.3.
void Bbr3::update_congestion_signals(const AckEvent& event) {
    update_max_bandwidth(event);
    if (!loss_round_start_) return;
    if (loss_in_round_ && !is_probing()) adapt_lower_bounds();
    loss_in_round_ = false;
}

// 5.5.10.3, InitLowerBounds and LossLowerBounds: towards what the path has just delivered.
void Bbr3::adapt_lower_bounds() {
    if (bandwidth_shortterm_ == kUnboundedRate) bandwidth_shortterm_ = max_bandwidth();
    if (inflight_shortterm_ == kUnbounded) inflight_shortterm_ = window_bytes_;
    bandwidth_shortterm_ = std::max(bandwidth_latest_, parameters_.beta * bandwidth_shortterm_);
    const auto least =
        static_cast<std::uint64_t>(parameters_.beta * static_cast<double>(inflight_shortterm_));
    inflight_shortterm_ = std::max(inflight_latest_, least);
}

void Bbr3::reset_short_term_model() {
    bandwidth_shortterm_ = kUnboundedRate;
    inflight_shortterm_ = kUnbounded;
}

// 5.6.4.4: at the end of loss recovery the window returns, as far as the model allows.
void Bbr3::update_recovery(const AckEvent& event) {
    if (!recovery_.active()) return;
    recovery_.on_ack(event.largest_acked_sent_time);
    if (!recovery_.active()) restore_window();
}

// 5.5.11.1.
void Bbr3::save_state_upon_loss() {
    save_window();
    undo_state_.reset();
    undo_bandwidth_shortterm_ = bandwidth_shortterm_;
    undo_inflight_shortterm_ = inflight_shortterm_;
    undo_inflight_longterm_ = inflight_longterm_;
}

// 5.5.11.2, HandleSpuriousLossDetection.
void Bbr3::on_spurious_loss(Time) {
    restore_window();
    loss_in_round_ = false;
    loss_ranges_in_round_ = 0;
    reset_full_bandwidth();
    bandwidth_shortterm_ = std::max(bandwidth_shortterm_, undo_bandwidth_shortterm_);
    inflight_shortterm_ = std::max(inflight_shortterm_, undo_inflight_shortterm_);
    inflight_longterm_ = std::max(inflight_longterm_, undo_inflight_longterm_);
    if (undo_state_ == State::startup && state_ != State::startup) {
        full_bandwidth_reached_ = false;
        if (state_ != State::probe_rtt) state_ = State::startup;
    } else if (undo_state_ == State::up && state_ != State::up && state_ != State::probe_rtt) {
        start_refill();
    }
    undo_state_.reset();
}

}  // namespace quicgym
