#include "sim/quic/sender.hpp"

#include <algorithm>
#include <cmath>

#include "controllers/catalogue.hpp"

namespace quicgym::quic {

namespace {

constexpr std::uint64_t kClientHelloBytes = 280;
constexpr std::uint32_t kProbesPerTimeout = 2;  // RFC 9002 6.2.4

// Everything around a stream chunk at its largest: short header, STREAM type, id and offset, tag.
constexpr std::uint64_t kLargestOverheadBytes = 1 + kConnectionIdBytes + 4 + 1 + 1 + 8 + kTagBytes;
// What an ACK frame leaves free for the frame behind it: the header of a STREAM frame is the longest.
constexpr std::size_t kFrameRoom = 1 + 1 + 8;
// RFC 9001 5.4.2: header protection samples four bytes after the packet number's start.
constexpr std::size_t kSmallestPayload = 4;

}  // namespace

Sender::Sender(const Flow& flow, std::size_t flow_index, std::uint64_t seed, Time start)
    : controller_(flow.controller_factory
                      ? flow.controller_factory(flow.parameters, flow.max_datagram_bytes)
                      : make_controller(flow.controller, flow.parameters, flow.max_datagram_bytes)),
      stream_(flow.flow_control_window_bytes),
      max_datagram_bytes_(flow.max_datagram_bytes),
      next_timeout_(std::min(start, flow.stop)),
      ecn_(flow.ecn),
      application_(flow.application, flow.max_datagram_bytes - kLargestOverheadBytes, start),
      send_buffer_bytes_(flow.send_buffer_bytes),
      random_(seed, RandomPurpose::controller, flow_index),
      start_(start),
      stop_(flow.stop),
      window_(start, controller_->window_bytes()),
      sent_bins_(start, flow.stop) {}

// ---- connection ----------------------------------------------------------------------------

struct Sender::Handler : FrameHandler {
    Sender& sender;
    Time now;
    PacketType packet;

    Handler(Sender& s, Time t, PacketType p) : sender(s), now(t), packet(p) {}

    void on_ack(const AckFrame& ack) {
        if (packet == PacketType::initial) {
            sender.on_handshake_reply(now, ack);
        } else {
            sender.on_ack(now, ack);
        }
    }
    void on_max_data(std::uint64_t limit) { sender.stream_.raise_data_limit(limit); }
    void on_max_stream_data(std::uint64_t stream_id, std::uint64_t limit) {
        if (stream_id == kStreamId) sender.stream_.raise_stream_limit(limit);
    }
    void on_connection_close(std::uint64_t) { sender.close(now); }
};

Receipt Sender::on_datagram(Time now, const DatagramView& datagram) {
    if (phase_ == Phase::idle || phase_ == Phase::closed) return {};
    if (datagram.size_bytes < kTagBytes) return {ParseError::truncated};
    Reader reader(datagram, datagram.size_bytes - kTagBytes);
    PacketHeader header;
    if (const ParseError error = read_header(reader, header); error != ParseError::none) return {error};
    Handler handler(*this, now, header.type);
    bool ack_eliciting = false;
    if (header.type == PacketType::initial)
        return {read_frames(reader, header.type, handler, ack_scratch_, ack_eliciting)};

    // Without the handshake's keys a 1-RTT packet cannot be read (RFC 9001 5.7).
    if (phase_ != Phase::connected) return {};
    const std::uint64_t number = decode_packet_number(
        acks_.expected_packet_number(), header.truncated_packet_number, header.packet_number_bytes);
    if (!acks_.is_new(number)) return {};
    const ParseError error = read_frames(reader, header.type, handler, ack_scratch_, ack_eliciting);
    if (error != ParseError::none) return {error};
    acks_.on_packet(number, now, ack_eliciting, datagram.ecn);
    return {ParseError::none, number};
}

void Sender::on_timeout(Time now) {
    if (phase_ == Phase::closed) return;
    if (now >= stop_) {
        if (phase_ == Phase::idle) {
            close(now);
        } else {
            phase_ = Phase::closing;
        }
        return;
    }
    if (phase_ == Phase::idle && now >= start_) {
        phase_ = Phase::connecting;
        send_initial_ = true;
    } else if (phase_ == Phase::connecting && now >= initial_deadline_) {
        send_initial_ = true;
        ++probe_count_;
        ++probe_timeouts_;
    } else if (phase_ == Phase::connected) {
        if (loss_time_ <= now) {
            detect_losses(now);
            resolve_oldest(now);
            watch_window(now);
        } else if (loss_time_ == kNever && in_flight_ > 0 && probe_deadline() <= now) {
            ++probe_count_;
            ++probe_timeouts_;
            probes_to_send_ = kProbesPerTimeout;
        }
    }
}

void Sender::close(Time now) {
    phase_ = Phase::closed;
    closed_time_ = now;
    sent_bins_.finish(now, sent_bytes_);
}

void Sender::on_handshake_reply(Time now, const AckFrame& ack) {
    if (phase_ != Phase::connecting) return;
    // Only the latest Initial has an unambiguous send time.
    const Time sample = ack.ranges[0].largest + 1 == initial_number_ ? now - initial_sent_time_ : 0;
    if (sample > 0) {
        rtt_.update(sample, 0);
        rtt_histogram_.add(sample);
        first_rtt_time_ = now;
    }
    phase_ = Phase::connected;
    probe_count_ = 0;
    delivered_time_ = first_sent_time_ = next_send_ = now;
    AckEvent event;
    event.now = now;
    event.rtt = sample;
    event.smoothed_rtt = rtt_.smoothed();
    event.min_rtt = rtt_.minimum();
    event.largest_acked_sent_time = initial_sent_time_;
    event.unsent_bytes = application_.written_bytes(now);
    event.random = &random_;
    controller_->on_ack(event);
    watch_window(now);
}

bool Sender::poll_handshake(Time now, Datagram& out) {
    if (phase_ == Phase::closing) {
        Writer writer(out);
        begin_packet(writer, now, kFrameRoom);
        writer.byte(frame_type::connection_close);
        writer.varint(0);  // NO_ERROR
        writer.varint(0);  // caused by no frame
        writer.varint(0);  // no reason phrase
        finish_packet(now, writer, out, writer.position(), {}, false);
        close(now);
        return true;
    }
    if (phase_ == Phase::connecting && send_initial_) {
        write_initial(out, kServerConnectionId, kClientConnectionId, initial_number_++, kNoPacket,
                      kClientHelloBytes);
        sent_bins_.advance(now, sent_bytes_);
        ++sent_packets_;
        sent_bytes_ += out.size_bytes;
        send_initial_ = false;
        initial_sent_time_ = now;
        initial_deadline_ = now + rtt_.probe_timeout(0, probe_count_);
        return true;
    }
    switch (phase_) {
        case Phase::idle:
            next_timeout_ = std::max(now, std::min(start_, stop_));
            break;
        case Phase::connecting:
            next_timeout_ = std::max(now, std::min(initial_deadline_, stop_));
            break;
        default:
            next_timeout_ = kNever;
    }
    return false;
}

// ---- sending -------------------------------------------------------------------------------

bool Sender::poll_datagram(Time now, Datagram& out) {
    if (phase_ != Phase::connected) return poll_handshake(now, out);
    const std::uint64_t written = application_.written_bytes(now);
    if (probes_to_send_ > 0) {
        --probes_to_send_;
        if (!stream_.has_data(written)) prepare_probe();
        if (stream_.has_data(written)) {
            send_stream_data(now, out);
        } else {
            send_control(now, out, true);
        }
        return true;
    }
    if (stream_.has_data(written)) {
        if (next_send_ <= now && in_flight_ + max_datagram_bytes_ <= controller_->window_bytes()) {
            send_stream_data(now, out);
            return true;
        }
    } else if (stream_.blocked(written) && blocked_limit_ != stream_.limit() &&
               in_flight_ + max_datagram_bytes_ <= controller_->window_bytes()) {
        blocked_limit_ = stream_.limit();
        if (counted_limit_ != blocked_limit_) ++blocked_events_;
        counted_limit_ = blocked_limit_;
        send_control(now, out, true);
        return true;
    } else {
        mark_application_limited();
    }
    if (acks_.deadline() <= now) {
        send_control(now, out, false);
        return true;
    }
    if (application_.finite() && transfer_complete()) {
        phase_ = Phase::closing;
        return poll_handshake(now, out);
    }
    arm_timer(now);
    return false;
}

bool Sender::transfer_complete() const {
    return in_flight_ == 0 && !stream_.has_lost() && stream_.next_offset() == application_.total_bytes();
}

// Writes the header and, when one is owed, an ACK frame. Returns the packet number's length.
std::size_t Sender::begin_packet(Writer& writer, Time now, std::size_t reserve) {
    const std::uint64_t number = sent_.next();
    const std::uint64_t unacknowledged = largest_acked_ == kNoPacket ? number + 1 : number - largest_acked_;
    const std::size_t number_bytes = packet_number_bytes(unacknowledged);
    write_short_header(writer, kServerConnectionId, number, number_bytes);
    if (acks_.pending()) acks_.write(writer, now, reserve);
    return number_bytes;
}

void Sender::send_stream_data(Time now, Datagram& out) {
    Writer writer(out);
    begin_packet(writer, now, kFrameRoom);
    const std::uint64_t offset = stream_.next_chunk_offset();
    const std::size_t stream_header = 1 + 1 + (offset > 0 ? varint_bytes(offset) : 0);
    const std::uint64_t room = max_datagram_bytes_ - kTagBytes - writer.position() - stream_header;
    const std::uint64_t written = application_.written_bytes(now);
    const StreamChunk chunk = stream_.take(room, written);
    const bool fin = application_.finite() && chunk.offset + chunk.length == application_.total_bytes();
    // Without a length field: the frame reaches to the end of the packet.
    writer.byte(static_cast<std::uint8_t>(frame_type::stream | (offset > 0 ? frame_type::stream_offset : 0) |
                                          (fin ? frame_type::stream_fin : 0)));
    writer.varint(kStreamId);
    if (offset > 0) writer.varint(offset);
    finish_packet(now, writer, out, writer.position() + chunk.length, chunk, true);
}

// A packet without stream data: DATA_BLOCKED when blocked, PING as a probe, or an ACK alone.
void Sender::send_control(Time now, Datagram& out, bool ack_eliciting) {
    Writer writer(out);
    const std::size_t number_bytes = begin_packet(writer, now, kFrameRoom);
    if (ack_eliciting && stream_.blocked(application_.written_bytes(now))) {
        writer.byte(frame_type::data_blocked);
        writer.varint(stream_.limit());
    } else if (ack_eliciting) {
        writer.byte(frame_type::ping);
    }
    const std::size_t smallest = 1 + kConnectionIdBytes + number_bytes + kSmallestPayload;
    finish_packet(now, writer, out, std::max(writer.position(), smallest), {}, ack_eliciting);
}

// Accounts for the packet that `writer` has begun and that takes `size` bytes without the tag.
void Sender::finish_packet(Time now, const Writer& writer, Datagram& out, std::size_t size, StreamChunk chunk,
                           bool ack_eliciting) {
    const std::uint64_t datagram_bytes = size + kTagBytes;
    out.prefix_bytes = static_cast<std::uint8_t>(writer.position());
    out.size_bytes = static_cast<std::uint16_t>(datagram_bytes);
    out.ecn = ecn_ ? Ecn::ect_0 : Ecn::not_ect;
    sent_bins_.advance(now, sent_bytes_);
    ++sent_packets_;
    sent_bytes_ += datagram_bytes;

    SentPacket& packet = sent_.push();
    packet.sent_time = now;
    packet.size_bytes = out.size_bytes;
    packet.stream_offset = chunk.offset;
    packet.stream_bytes = static_cast<std::uint16_t>(chunk.length);
    if (!ack_eliciting) {
        packet.state = PacketState::not_ack_eliciting;
        return;
    }
    packet.state = PacketState::outstanding;
    packet.repaired = false;
    // Draft section 3.2: a flight that starts from nothing starts its own clock.
    if (in_flight_ == 0) first_sent_time_ = delivered_time_ = now;
    packet.first_sent_time = first_sent_time_;
    packet.delivered_time = delivered_time_;
    packet.delivered_bytes = delivered_;
    packet.app_limited = app_limited_until_ != 0;
    in_flight_ += datagram_bytes;
    last_ack_eliciting_sent_ = now;

    if (controller_->pacing_rate() != paced_rate_) {
        paced_rate_ = controller_->pacing_rate();
        pacing_ns_per_byte_ = 1e9 / paced_rate_;
    }
    next_send_ = std::max(next_send_, now) +
                 static_cast<Time>(static_cast<double>(datagram_bytes) * pacing_ns_per_byte_ + 0.5);
    controller_->on_packet_sent(now, datagram_bytes, in_flight_);
    watch_window(now);
}

// RFC 9002 6.2.4: with nothing new to send, a probe carries the oldest unacknowledged data, and the next one
// other data. Should the probe be lost, it is the probe that is repaired.
void Sender::prepare_probe() {
    for (std::uint64_t number = sent_.oldest(); number != sent_.next(); ++number) {
        SentPacket& packet = sent_[number];
        const bool carries_data = packet.stream_bytes > 0 && !packet.repaired;
        if (packet.state != PacketState::outstanding || !carries_data) continue;
        packet.repaired = true;
        stream_.on_lost({packet.stream_offset, packet.stream_bytes});
        return;
    }
}

// Draft section 3.4: the application, not the network, leaves the window unused.
void Sender::mark_application_limited() {
    if (in_flight_ + max_datagram_bytes_ <= controller_->window_bytes()) {
        app_limited_until_ = std::max<std::uint64_t>(delivered_ + in_flight_, 1);
    }
}

Time Sender::probe_deadline() const {
    return last_ack_eliciting_sent_ + rtt_.probe_timeout(kMaxAckDelay, probe_count_);
}

void Sender::arm_timer(Time now) {
    Time timeout = std::min(acks_.deadline(), stop_);
    if (loss_time_ != kNever) {
        timeout = std::min(timeout, loss_time_);
    } else if (in_flight_ > 0) {
        timeout = std::min(timeout, probe_deadline());
    }
    if (!stream_.has_data(application_.written_bytes(now))) {
        timeout = std::min(timeout, application_.next_write());
    } else if (in_flight_ + max_datagram_bytes_ <= controller_->window_bytes()) {
        timeout = std::min(timeout, next_send_);
    }
    next_timeout_ = std::max(timeout, now);
}

void Sender::set_parameters(Time now, const ParameterValues& values) {
    controller_->set_parameters(values);
    if (phase_ != Phase::closed) watch_window(now);
    // An idle endpoint keeps its start: nothing that it does depends on the controller yet.
    if (phase_ == Phase::connected) next_timeout_ = now;
}

// ---- observation ---------------------------------------------------------------------------

TraceSample Sender::sample(Time now) const {
    const ControllerSnapshot snapshot = controller_->snapshot();
    TraceSample sample{};
    sample.time = now;
    sample.window_bytes = controller_->window_bytes();
    sample.pacing_rate = controller_->pacing_rate();
    sample.rtt = rtt_.latest();
    sample.smoothed_rtt = rtt_.has_sample() ? rtt_.smoothed() : 0;
    sample.in_flight_bytes = in_flight_;
    sample.sent_bytes = sent_bytes_;
    sample.delivered_bytes = delivered_;
    sample.lost_bytes = lost_bytes_;
    sample.mode = snapshot.mode;
    return sample;
}

void Sender::add_statistics(Time now, FlowStatistics& statistics) const {
    statistics.start = start_;
    statistics.sent_packets = sent_packets_;
    statistics.sent_bytes = sent_bytes_;
    statistics.declared_lost_packets = lost_packets_;
    statistics.congestion_events = congestion_events_;
    statistics.persistent_congestion_events = persistent_congestion_events_;
    statistics.probe_timeouts = probe_timeouts_;
    statistics.blocked_events = blocked_events_;
    statistics.send_buffer_events = send_buffer_events_;
    statistics.ecn_marks = ecn_ce_count_;
    statistics.rtt_samples = rtt_histogram_.count();
    statistics.rtt_sum_seconds = rtt_histogram_.sum_seconds();
    statistics.rtt_p95_seconds = rtt_histogram_.quantile_seconds(0.95);
    statistics.min_rtt = rtt_.minimum();

    const Time end = std::max(start_, std::min(now, closed_time_));
    const auto packet_bytes = static_cast<double>(max_datagram_bytes_);
    statistics.window_seconds = to_seconds(end - start_);
    statistics.window_packet_seconds = window_.until(end) / packet_bytes;
    statistics.max_window_packets = static_cast<double>(window_.maximum()) / packet_bytes;
    const RateBins bins = sent_bins_.at(now, sent_bytes_);
    statistics.send_rate_bins = bins.count();
    statistics.send_rate_variance = bins.variance();
}

void Sender::add_state(Time now, FlowState& state) const {
    state.start = start_;
    state.sample = sample(now);
    state.rtt_samples = rtt_histogram_.count();
    state.rtt_sum_seconds = rtt_histogram_.sum_seconds();
    state.min_rtt = rtt_.minimum();
}

}  // namespace quicgym::quic
