// The sender's side of RFC 9002: acknowledgements, loss detection, persistent congestion, and the
// delivery-rate samples that acknowledgements yield.
#include <algorithm>

#include "sim/quic/sender.hpp"

namespace quicgym::quic {

namespace {

constexpr std::uint64_t kPacketThreshold = 3;  // RFC 9002 6.1.1
// The estimator cuts every delay to max_ack_delay; a peer's absurd one must not overflow before that.
constexpr std::uint64_t kMaxAckDelayUnits = 1U << 20;

}  // namespace

void Sender::on_ack(Time now, const AckFrame& ack) {
    const std::uint64_t largest = ack.ranges[0].largest;
    if (largest >= sent_.next()) return;  // acknowledges what was never sent: not from our peer

    const std::uint64_t prior_in_flight = in_flight_;
    const SentPacket* newest = nullptr;
    std::uint64_t newest_number = 0;
    std::uint64_t acked_bytes = 0;
    // Everything kPacketThreshold below the largest acknowledged was resolved by earlier ACKs, so
    // this walks over what is new and a few packets besides, however long the ranges are.
    for (std::size_t i = 0; i < ack.range_count && ack.ranges[i].largest >= sent_.oldest(); ++i) {
        const std::uint64_t smallest = std::max(ack.ranges[i].smallest, sent_.oldest());
        for (std::uint64_t number = ack.ranges[i].largest + 1; number-- > smallest;) {
            SentPacket& packet = sent_[number];
            if (packet.state != PacketState::outstanding) continue;
            packet.state = PacketState::acknowledged;
            acked_bytes += packet.size_bytes;
            if (newest == nullptr) {
                newest = &packet;
                newest_number = number;
            }
        }
    }
    if (largest_acked_ == kNoPacket || largest > largest_acked_) largest_acked_ = largest;
    if (newest == nullptr) return;
    const SentPacket acked = *newest;

    in_flight_ -= acked_bytes;
    delivered_ += acked_bytes;
    probe_count_ = 0;

    AckEvent event;
    event.now = now;
    // RFC 9002 5.1: a sample only from the largest acknowledged packet, when it is newly so.
    if (newest_number == largest) {
        const Time sample = now - acked.sent_time;
        const std::uint64_t delay_units = std::min(ack.delay, kMaxAckDelayUnits);
        event.rtt = rtt_.update(sample, static_cast<Time>(delay_units << kAckDelayExponent) * kMicrosecond);
        rtt_histogram_.add(sample);
        if (first_rtt_time_ == kNever) first_rtt_time_ = now;
    }
    event.sample = take_rate_sample(now, acked);
    if (acked.delivered_bytes >= next_round_delivered_) {
        next_round_delivered_ = delivered_;
        event.round_start = true;
    }

    // Before losses, as in RFC 9002 A.7: persistent congestion forgets the recovery period, and a mark of the
    // same ACK would cut the window again.
    if (ack.has_ecn && ack.ecn.ce > ecn_ce_count_) {
        const std::uint64_t marked = ack.ecn.ce - ecn_ce_count_;
        ecn_ce_count_ = ack.ecn.ce;
        controller_->on_ecn({now, acked.sent_time, marked, in_flight_});
    }
    event.newly_lost_bytes = detect_losses(now);
    resolve_oldest(now);

    event.smoothed_rtt = rtt_.smoothed();
    event.min_rtt = rtt_.minimum();
    event.largest_acked_sent_time = acked.sent_time;
    event.delivered_bytes = delivered_;
    event.newly_acked_bytes = acked_bytes;
    event.prior_in_flight_bytes = prior_in_flight;
    event.in_flight_bytes = in_flight_;
    event.unsent_bytes = watch_send_buffer(now);
    event.blocked_events = blocked_events_ + send_buffer_events_;
    event.app_limited = app_limited_until_ != 0;
    event.random = &random_;
    controller_->on_ack(event);
    watch_window(now);
}

// Between two ACKs the backlog cannot fall far, so looking once per ACK misses nothing. Once full,
// the buffer counts as full until a third of it is free, which is when Linux wakes a writer: without
// the gap every packet at the limit would be an event. An application that is always ahead of the
// network, such as a bulk transfer, fills the buffer once. Returns the unsent bytes.
std::uint64_t Sender::watch_send_buffer(Time now) {
    const std::uint64_t unsent = application_.written_bytes(now) - stream_.next_offset();
    if (unsent > send_buffer_bytes_) {
        send_buffer_events_ += send_buffer_full_ ? 0 : 1;
        send_buffer_full_ = true;
    } else if (unsent <= send_buffer_bytes_ / 3 * 2) {
        send_buffer_full_ = false;
    }
    return unsent;
}

// draft-cheng-iccrg-delivery-rate-estimation-02, section 3.3.
RateSample Sender::take_rate_sample(Time now, const SentPacket& newest) {
    if (app_limited_until_ != 0 && delivered_ > app_limited_until_) app_limited_until_ = 0;
    RateSample sample;
    sample.app_limited = newest.app_limited;
    const Time send_elapsed = newest.sent_time - newest.first_sent_time;
    const Time ack_elapsed = now - newest.delivered_time;
    sample.interval = std::max(send_elapsed, ack_elapsed);
    // Shorter than a round trip: the ACKs were compressed and the sample would be too high.
    if (sample.interval >= rtt_.minimum() && sample.interval > 0) {
        sample.delivery_rate = static_cast<double>(delivered_ - newest.delivered_bytes) * 1e9 /
                               static_cast<double>(sample.interval);
    }
    first_sent_time_ = newest.sent_time;
    delivered_time_ = now;
    return sample;
}

// RFC 9002 6.1 and A.10. Tells the controller and returns the bytes declared lost.
std::uint64_t Sender::detect_losses(Time now) {
    loss_time_ = kNever;
    if (largest_acked_ == kNoPacket) return 0;
    LossEvent event;
    const Time loss_delay = rtt_.loss_delay();
    for (std::uint64_t number = sent_.oldest(); number < largest_acked_; ++number) {
        SentPacket& packet = sent_[number];
        if (packet.state != PacketState::outstanding) continue;
        if (number + kPacketThreshold > largest_acked_ && packet.sent_time + loss_delay > now) {
            // Packets leave in order: the first that may be lost later is the next to be.
            loss_time_ = packet.sent_time + loss_delay;
            break;
        }
        packet.state = PacketState::lost;
        in_flight_ -= packet.size_bytes;
        event.lost_bytes += packet.size_bytes;
        ++event.lost_packets;
        event.largest_lost_sent_time = packet.sent_time;
        if (packet.stream_bytes > 0) {
            if (!packet.repaired) stream_.on_lost({packet.stream_offset, packet.stream_bytes});
        } else {
            blocked_limit_ = kNoPacket;  // it may have been the DATA_BLOCKED
        }
    }
    if (event.lost_packets == 0) return 0;
    lost_packets_ += event.lost_packets;
    lost_bytes_ += event.lost_bytes;
    ++congestion_events_;
    event.now = now;
    event.in_flight_bytes = in_flight_;
    controller_->on_loss(event);
    return event.lost_bytes;
}

// Forgets the packets that are resolved. Every packet passes here once and in order, which is what
// the search for persistent congestion (RFC 9002 7.6) needs: a run of losses that spans more than
// the duration with nothing acknowledged in between.
void Sender::resolve_oldest(Time now) {
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
    if (!persistent) return;
    ++persistent_congestion_events_;
    rtt_.restart_minimum();
    controller_->on_persistent_congestion(now);
}

}  // namespace quicgym::quic
