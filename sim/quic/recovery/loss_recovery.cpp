#include "sim/quic/recovery/loss_recovery.hpp"

#include <algorithm>

namespace quicgym::quic {

namespace {

// The estimator cuts every delay to max_ack_delay; a peer's absurd one must not overflow before that.
constexpr std::uint64_t kMaxAckDelayUnits = 1U << 20;

}  // namespace

LossRecovery::NewlyAcked LossRecovery::on_ack(Time now, const AckFrame& ack) {
    NewlyAcked acked;
    if (probe_timeout_ > 0) [[unlikely]]
        last_ack_ = now;
    const std::uint64_t largest = ack.ranges[0].largest;
    if (largest >= sent_.next()) return acked;  // of what was never sent: not from our peer

    std::uint64_t newest_number = 0;
    // Without reordering everything kPacketThreshold below the largest acknowledged was resolved by earlier
    // ACKs, so this walks over what is new and a few packets besides, however long the ranges are.
    for (std::size_t i = 0; i < ack.range_count && ack.ranges[i].largest >= sent_.oldest(); ++i) {
        const std::uint64_t smallest = std::max(ack.ranges[i].smallest, sent_.oldest());
        for (std::uint64_t number = ack.ranges[i].largest + 1; number-- > smallest;) {
            SentPacket& packet = sent_[number];
            if (packet.state != PacketState::outstanding) continue;
            packet.state = PacketState::acknowledged;
            acked.bytes += packet.size_bytes;
            ++acked.packets;
            if (acked.newest == nullptr) {
                acked.newest = &packet;
                newest_number = number;
            }
        }
    }
    if (largest_acked_ == kNoPacket || largest > largest_acked_) largest_acked_ = largest;
    if (acked.newest == nullptr) return acked;

    in_flight_ -= acked.bytes;
    probe_count_ = 0;
    // RFC 9002 5.1: a sample only from the largest acknowledged packet, when it is newly so.
    if (newest_number == largest) {
        acked.rtt_sample = now - acked.newest->sent_time;
        const std::uint64_t delay_units = std::min(ack.delay, kMaxAckDelayUnits);
        acked.rtt =
            rtt_.update(acked.rtt_sample, static_cast<Time>(delay_units << kAckDelayExponent) * kMicrosecond);
        if (first_rtt_time_ == kNever) first_rtt_time_ = now;
    }
    return acked;
}

bool LossRecovery::take_spurious_losses(SpuriousLosses::Arrived arrived) {
    if (arrived.packets == 0) return false;
    spuriously_lost_packets_ += arrived.packets;
    if (adaptive_) {
        recoveries_left_ = kSpuriousRecoveries;
        if (!reordering_seen_ || largest_acked_ >= next_step_number_) {
            if (reordering_seen_) ++reordering_steps_;
            reordering_seen_ = true;
            next_step_number_ = sent_.next();
        }
    }
    return arrived.completes_period;
}

std::uint64_t LossRecovery::on_ecn_counts(const AckFrame& ack) {
    if (!ack.has_ecn || ack.ecn.ce <= ecn_ce_count_) return 0;
    const std::uint64_t marked = ack.ecn.ce - ecn_ce_count_;
    ecn_ce_count_ = ack.ecn.ce;
    return marked;
}

// Every packet passes here once and in order, which is what the search for persistent congestion
// (RFC 9002 7.6) needs: a run of losses that spans more than the duration with nothing acknowledged in
// between.
bool LossRecovery::forget_resolved() {
    bool persistent = false;
    while (!sent_.empty()) {
        const SentPacket& packet = sent_[sent_.oldest()];
        if (packet.state == PacketState::outstanding) break;
        if (packet.state == PacketState::acknowledged) {
            lost_run_start_ = kNever;
        } else if (packet.state == PacketState::lost && packet.sent_time >= first_rtt_time_) {
            if (lost_run_start_ == kNever) lost_run_start_ = packet.sent_time;
            if (packet.sent_time - lost_run_start_ > rtt_.persistent_congestion_duration()) {
                persistent = true;
                lost_run_start_ = kNever;
            }
        }
        sent_.pop_oldest();
    }
    if (!persistent) return false;
    ++persistent_congestion_events_;
    rtt_.restart_minimum();
    return true;
}

const SentPacket* LossRecovery::repair_oldest() {
    for (std::uint64_t number = sent_.oldest(); number != sent_.next(); ++number) {
        SentPacket& packet = sent_[number];
        const bool carries_data = packet.stream_bytes > 0 && !packet.repaired;
        if (packet.state != PacketState::outstanding || !carries_data) continue;
        packet.repaired = true;
        return &packet;
    }
    return nullptr;
}

void LossRecovery::add_statistics(FlowStatistics& statistics) const {
    statistics.declared_lost_packets = lost_packets_;
    statistics.spuriously_lost_packets = spuriously_lost_packets_;
    statistics.congestion_events = congestion_events_;
    statistics.persistent_congestion_events = persistent_congestion_events_;
    statistics.probe_timeouts = probe_timeouts_;
    statistics.ecn_marks = ecn_ce_count_;
    statistics.min_rtt = rtt_.minimum();
}

}  // namespace quicgym::quic
