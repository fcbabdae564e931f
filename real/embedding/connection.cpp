#include "real/embedding/connection.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/quic/wire.hpp"

namespace quicgym::embedding {

using quic::PacketState;
using quic::SentPacket;

namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw std::invalid_argument(what);
}

std::string packet(std::uint64_t number) {
    return "packet " + std::to_string(number);
}

}  // namespace

Connection::Connection(std::unique_ptr<Controller> controller, std::uint64_t seed, Time start)
    : controller_(std::move(controller)),
      random_(seed, RandomPurpose::controller, 0),
      start_(start),
      now_(start) {
    if (start < 0 || start > kLatest) {
        refuse("now_ns = " + std::to_string(start) + "; give nanoseconds from 0 to 2^62 - 1");
    }
}

void Connection::advance(Time now) {
    if (now < now_) {
        refuse("time goes backwards: now_ns = " + std::to_string(now) + ", the last call's was " +
               std::to_string(now_));
    }
    if (now > kLatest) {
        refuse("now_ns = " + std::to_string(now) + "; a time is at most 2^62 - 1");
    }
    if (now > now_) flush();
    now_ = now;
    if (controller_->timer() <= now) controller_->fire_timer(now);
}

void Connection::on_handshake(Time now, Time rtt) {
    if (handshake_done_ || sent_.next() > 0) {
        refuse("the handshake is told of once, before the first packet");
    }
    if (rtt < 0) refuse("rtt_ns = " + std::to_string(rtt) + "; give 0 where there is no sample");
    if (rtt > kLongestRtt) refuse("rtt_ns = " + std::to_string(rtt) + "; a sample is at most a day");
    advance(now);
    handshake_done_ = true;
    if (rtt > 0) {
        rtt_.update(rtt, 0);
        ++rtt_samples_;
        rtt_sum_seconds_ += to_seconds(rtt);
    }
    delivery_rate_.start(now);
    AckEvent event;
    event.now = now;
    event.rtt = event.measured_rtt = rtt;
    event.smoothed_rtt = rtt_.smoothed();
    event.min_rtt = rtt_.minimum();
    event.largest_acked_sent_time = now - rtt;
    event.unsent_bytes = unsent_bytes_;
    event.random = &random_;
    controller_->on_ack(event);
}

void Connection::on_sent(Time now, std::uint64_t packet_number, std::uint64_t bytes) {
    if (packet_number < sent_.next()) {
        refuse(packet(packet_number) + " is sent after packet " + std::to_string(sent_.next() - 1) +
               "; numbers rise");
    }
    if (packet_number - sent_.next() > kMostLeftOut && sent_.next() > 0) {
        refuse(packet(packet_number) + " follows packet " + std::to_string(sent_.next() - 1) + "; at most " +
               std::to_string(kMostLeftOut) + " numbers may be left out");
    }
    if (packet_number > quic::kMaxVarint) {
        refuse(packet(packet_number) + ": numbers end at 2^62 - 1 (RFC 9000 12.3)");
    }
    if (bytes == 0 || bytes > UINT16_MAX) {
        refuse("bytes = " + std::to_string(bytes) + "; a datagram has 1 to 65535");
    }
    advance(now);
    flush();
    if (sent_.empty() && sent_.next() == 0) sent_.begin_at(packet_number);
    while (sent_.next() < packet_number) sent_.push().state = PacketState::not_ack_eliciting;
    SentPacket& record = sent_.push();
    record = {};
    record.sent_time = now;
    record.size_bytes = static_cast<std::uint16_t>(bytes);
    record.state = PacketState::outstanding;
    in_flight_ += bytes;
    sent_bytes_ += bytes;
    delivery_rate_.on_packet_sent(now, in_flight_, lost_bytes_, record);
    controller_->on_packet_sent(now, bytes, in_flight_);
}

bool Connection::is_known(std::uint64_t packet_number) const {
    return packet_number >= sent_.oldest() && packet_number < sent_.next();
}

void Connection::check_ascending(std::span<const std::uint64_t> packet_numbers) const {
    for (std::size_t i = 0; i < packet_numbers.size(); ++i) {
        if (packet_numbers[i] >= sent_.next()) refuse(packet(packet_numbers[i]) + " was never sent");
        if (i > 0 && packet_numbers[i] <= packet_numbers[i - 1]) {
            refuse(packet(packet_numbers[i]) + " follows packet " + std::to_string(packet_numbers[i - 1]) +
                   "; give each number once, in ascending order");
        }
    }
}

void Connection::on_ack(Time now, Time ack_delay, std::span<const std::uint64_t> packet_numbers) {
    check_ascending(packet_numbers);
    if (ack_delay < 0) refuse("ack_delay_ns = " + std::to_string(ack_delay) + "; give 0 or more");
    for (const std::uint64_t number : packet_numbers) {
        if (is_known(number) && sent_[number].state == PacketState::acknowledged) {
            refuse(packet(number) + " is acknowledged a second time");
        }
    }
    advance(now);
    flush();  // of another frame at the same time
    if (packet_numbers.empty()) return;
    const std::uint64_t prior_in_flight = in_flight_;
    const SentPacket* newest = nullptr;
    std::uint64_t newest_number = 0, bytes = 0, packets = 0;
    bool was_reordering = false;
    for (const std::uint64_t number : packet_numbers) {
        if (!is_known(number)) continue;
        SentPacket& record = sent_[number];
        if (record.state == PacketState::lost) {
            record.state = PacketState::acknowledged;
            was_reordering = spurious_losses_.on_arrival(number).completes_period || was_reordering;
        } else if (record.state == PacketState::outstanding) {
            record.state = PacketState::acknowledged;
            bytes += record.size_bytes;
            ++packets;
            newest = &record;
            newest_number = number;
        }
    }
    in_flight_ -= bytes;
    const std::uint64_t largest = packet_numbers.back();
    Time rtt = 0;
    Time measured_rtt = 0;
    // RFC 9002 5.1: a sample only from the largest acknowledged packet.
    if (newest != nullptr && newest_number == largest && largest >= largest_acked_) {
        measured_rtt = std::min(now - newest->sent_time, kLongestRtt);
        rtt = rtt_.update(measured_rtt, ack_delay);
        ++rtt_samples_;
        rtt_sum_seconds_ += to_seconds(measured_rtt);
    }
    largest_acked_ = std::max(largest_acked_, largest + 1);
    if (was_reordering) controller_->on_spurious_loss(now);
    if (newest == nullptr) return;

    pending_ = {};
    pending_.now = now;
    pending_.rtt = rtt;
    pending_.measured_rtt = measured_rtt;
    pending_.smoothed_rtt = rtt_.smoothed();
    pending_.min_rtt = rtt_.minimum();
    pending_.largest_acked_sent_time = newest->sent_time;
    pending_.newly_acked_bytes = bytes;
    pending_.newly_acked_packets = packets;
    pending_.prior_in_flight_bytes = prior_in_flight;
    pending_.sample = delivery_rate_.on_acked(now, *newest, bytes, rtt_.minimum());
    pending_.round_start = delivery_rate_.begins_round(*newest);
    pending_.delivered_bytes = delivery_rate_.delivered_bytes();
    pending_.app_limited = delivery_rate_.window_unused();
    pending_.no_unsent_data = delivery_rate_.app_limited();
    pending_.random = &random_;
    pending_lost_before_ = newest->lost_bytes;
    newest_acked_sent_time_ = newest->sent_time;
    has_pending_ = true;
}

void Connection::on_ecn(Time now, std::uint64_t newly_marked_packets) {
    advance(now);
    if (newly_marked_packets == 0) return;
    marks_ += newly_marked_packets;
    controller_->on_ecn({now, newest_acked_sent_time_, newly_marked_packets, in_flight_});
}

void Connection::on_loss(Time now, std::span<const std::uint64_t> packet_numbers) {
    check_ascending(packet_numbers);
    for (const std::uint64_t number : packet_numbers) {
        if (is_known(number) && sent_[number].state == PacketState::outstanding) continue;
        refuse(packet(number) + " is declared lost, but is not in flight");
    }
    advance(now);
    if (packet_numbers.empty()) return;
    LossEvent event;
    for (const std::uint64_t number : packet_numbers) {
        SentPacket& record = sent_[number];
        record.state = PacketState::lost;
        in_flight_ -= record.size_bytes;
        lost_bytes_ += record.size_bytes;
        event.lost_bytes += record.size_bytes;
        ++event.lost_packets;
        event.largest_lost_sent_time = record.sent_time;
        spurious_losses_.on_lost(now, number, record.sent_time);
        controller_->on_packet_lost({now, record.sent_time, number, record.size_bytes, record.in_flight_bytes,
                                     lost_bytes_ - record.lost_bytes, delivery_rate_.delivered_bytes(),
                                     record.app_limited});
    }
    event.now = now;
    event.in_flight_bytes = in_flight_;
    if (has_pending_) pending_.newly_lost_bytes += event.lost_bytes;
    controller_->on_loss(event);
}

void Connection::on_persistent_congestion(Time now) {
    advance(now);
    rtt_.restart_minimum();
    controller_->on_persistent_congestion(now);
}

void Connection::on_app_limited(Time now) {
    advance(now);
    flush();
    delivery_rate_.mark_app_limited(in_flight_);
}

void Connection::on_window_unused(Time now) {
    advance(now);
    flush();
    delivery_rate_.mark_window_unused(in_flight_);
}

void Connection::set_application(std::uint64_t unsent_bytes, std::uint64_t blocked_events) {
    unsent_bytes_ = unsent_bytes;
    blocked_events_ = blocked_events;
}

void Connection::flush() {
    if (!has_pending_) return;
    has_pending_ = false;
    // The state after the losses.
    pending_.smoothed_rtt = rtt_.smoothed();
    pending_.min_rtt = rtt_.minimum();
    pending_.in_flight_bytes = in_flight_;
    pending_.sample.lost_bytes = lost_bytes_ - pending_lost_before_;
    pending_.unsent_bytes = unsent_bytes_;
    pending_.blocked_events = blocked_events_;
    controller_->on_ack(pending_);
    forget();
}

void Connection::forget() {
    while (!sent_.empty() && sent_.next() - sent_.oldest() > kRemembered &&
           sent_[sent_.oldest()].state != PacketState::outstanding) {
        sent_.pop_oldest();
    }
}

void Connection::set_parameters(const ParameterValues& values) {
    flush();
    controller_->set_parameters(values);
}

const Controller& Connection::controller() {
    flush();
    return *controller_;
}

FlowState Connection::state(Time now) {
    advance(now);
    flush();
    FlowState state;
    state.start = start_;
    TraceSample& sample = state.sample;
    sample.time = now;
    sample.window_bytes = controller_->window_bytes();
    sample.pacing_rate = controller_->pacing_rate();
    sample.rtt = rtt_.latest();
    sample.smoothed_rtt = rtt_.has_sample() ? rtt_.smoothed() : 0;
    sample.in_flight_bytes = in_flight_;
    sample.sent_bytes = sent_bytes_;
    sample.delivered_bytes = delivery_rate_.delivered_bytes();
    sample.lost_bytes = lost_bytes_;
    const ControllerSnapshot snapshot = controller_->snapshot();
    sample.mode = snapshot.mode;
    state.set_cycle(snapshot);
    state.rtt_samples = rtt_samples_;
    state.rtt_sum_seconds = rtt_sum_seconds_;
    state.min_rtt = rtt_.minimum();
    state.ecn_marks = marks_;
    return state;
}

}  // namespace quicgym::embedding
