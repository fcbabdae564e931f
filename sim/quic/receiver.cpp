#include "sim/quic/receiver.hpp"

#include <algorithm>

namespace quicgym::quic {

namespace {

constexpr std::size_t kMaxDataRoom = 1 + 8;
constexpr std::size_t kControlRoom = kMaxDataRoom + 1 + 1 + 8 + 1;  // MAX_STREAM_DATA, HANDSHAKE_DONE
// STREAM with id, offset, length and the content that is stored.
constexpr std::size_t kRequestRoom = 1 + 1 + 8 + 2 + kRequestBytes;
constexpr std::uint32_t kMostExtraAcks = 2;

// The application reads whatever is in order at once.
std::uint64_t in_order(const RangeSet& stream) {
    const auto& ranges = stream.ranges();
    return !ranges.empty() && ranges.front().begin == 0 ? ranges.front().end : 0;
}

}  // namespace

Receiver::Receiver(const Flow& flow, Time start, std::unique_ptr<Client> client, std::uint64_t connection)
    : acks_(flow),
      window_bytes_(flow.flow_control_window_bytes),
      window_update_bytes_(flow.window_update_bytes > 0 ? flow.window_update_bytes
                                                        : window_bytes_ - window_bytes_ / 2),
      limit_(flow.flow_control_window_bytes),
      acknowledges_alone_(flow.acknowledges_alone),
      acks_for_max_data_(flow.acks_for_max_data),
      probe_timeout_(flow.probe_timeout),
      peer_id_(connection_id(kClientConnectionId, connection)),
      handshake_(Handshake::Side::server, connection),
      client_(std::move(client)),
      request_size_(flow.application.request_bytes),
      max_datagram_bytes_(flow.max_datagram_bytes),
      received_bins_(start, flow.stop),
      has_burst_stream_(flow.application.burst_own_stream) {}

struct Receiver::Handler : FrameHandler {
    Receiver& receiver;
    Time now;

    Handler(Receiver& r, Time t) : receiver(r), now(t) {}

    void on_ack(const AckFrame& ack) { receiver.on_ack(now, ack); }
    [[gnu::always_inline]] void on_stream(const StreamFrame& frame) { receiver.on_stream(now, frame); }
    void on_connection_close(std::uint64_t) { receiver.phase_ = Phase::closed; }
};

Receipt Receiver::on_datagram(Time now, const DatagramView& datagram) {
    received_bins_.advance(now, received_bytes_);
    ++received_packets_;
    received_bytes_ += datagram.size_bytes;
    if (phase_ == Phase::closed) return {};
    if (datagram.size_bytes < kTagBytes) return {ParseError::truncated};
    Reader reader(datagram, datagram.size_bytes - kTagBytes);
    PacketHeader header;
    if (const ParseError error = read_header(reader, header); error != ParseError::none) return {error};

    bool ack_eliciting = false;
    if (header.type == PacketType::initial) {
        FrameHandler nothing;
        const ParseError error = read_frames(reader, header.type, nothing, ack_scratch_, ack_eliciting);
        if (error == ParseError::none) on_initial(now, header.truncated_packet_number);
        return {error};
    }
    if (phase_ == Phase::listening) return {};
    const std::uint64_t number = decode_packet_number(
        acks_.expected_packet_number(), header.truncated_packet_number, header.packet_number_bytes);
    if (!opens(datagram, number) || !acks_.is_new(number)) return {};
    Handler handler(*this, now);
    const ParseError error = read_frames(reader, header.type, handler, ack_scratch_, ack_eliciting);
    if (error != ParseError::none) return {error};
    if (phase_ == Phase::accepting) {  // the client has our Initial: the handshake is complete
        phase_ = Phase::connected;
        send_handshake_done_ = true;
    }
    acks_.on_packet(number, now, ack_eliciting, datagram.ecn);
    if (probe_timeout_ > 0) [[unlikely]]
        restart_extra_ack(now);
    return {ParseError::none, number};
}

void Receiver::restart_extra_ack(Time now) {
    const bool has_received = acks_.expected_packet_number() > 0;
    extra_ack_time_ = has_received && extra_acks_ < kMostExtraAcks ? now + probe_timeout_ : kNever;
}

void Receiver::on_initial(Time now, std::uint64_t number) {
    if (phase_ != Phase::listening && phase_ != Phase::accepting) return;
    if (phase_ == Phase::listening && client_) client_->start(now);
    phase_ = Phase::accepting;
    handshake_.send_initial(number);
}

inline void Receiver::grant(std::uint64_t consumed) {
    if (consumed + window_bytes_ - limit_ <= window_update_bytes_) return;
    limit_ = consumed + window_bytes_;
    send_limits_ = true;
}

// Bursts count for flow control and not as goodput.
void Receiver::on_other_stream(std::uint64_t stream_id, std::uint64_t offset, std::uint64_t end) {
    if (!has_burst_stream_ || stream_id != kBurstStreamId) return;
    burst_stream_.insert(offset, end);
    burst_consumed_ = in_order(burst_stream_);
    grant(in_order(received_stream_) + burst_consumed_);
}

inline void Receiver::on_stream(Time now, const StreamFrame& frame) {
    const std::uint64_t end = frame.offset + frame.length;
    if (end > limit_) return;  // beyond flow control: dropped
    if (frame.stream_id != kStreamId) [[unlikely]]
        return on_other_stream(frame.stream_id, frame.offset, end);
    goodput_bytes_ += received_stream_.insert(frame.offset, end);
    if (frame.fin) fin_offset_ = end;

    const std::uint64_t consumed = in_order(received_stream_);
    grant(consumed + burst_consumed_);
    if (client_) client_->on_data(now, consumed);
    if (fin_offset_ == consumed && completion_ == kNever) {
        completion_ = now;
        received_bins_.finish(now, received_bytes_);
    }
}

void Receiver::on_ack(Time now, const AckFrame& ack) {
    const std::uint64_t largest = ack.ranges[0].largest;
    if (largest >= next_number_) return;
    if (largest_acked_ == kNoPacket || largest > largest_acked_) largest_acked_ = largest;
    if (control_number_ == kNoPacket) return;
    for (std::size_t i = 0; i < ack.range_count; ++i) {
        if (control_number_ < ack.ranges[i].smallest || control_number_ > ack.ranges[i].largest) continue;
        rtt_.update(now - control_sent_time_, 0);
        if (control_has_handshake_done_) handshake_done_acked_ = true;
        acked_requests_ = std::max(acked_requests_, control_requests_);
        control_number_ = kNoPacket;
        probe_count_ = 0;
        extra_acks_ = 0;
        return;
    }
}

void Receiver::on_timeout(Time now) {
    if (phase_ == Phase::closed) return;
    if (phase_ == Phase::accepting) handshake_.on_timeout(now);
    if (client_ && client_->next_timeout() <= now) client_->on_timeout(now);
    if (extra_ack_time_ <= now) {
        extra_ack_time_ = kNever;
        extra_ack_due_ = true;
        ++extra_acks_;
    }
    if (probe_deadline() <= now) {
        control_number_ = kNoPacket;
        ++probe_count_;
        send_limits_ = true;
        send_handshake_done_ = !handshake_done_acked_;
        sent_requests_ = acked_requests_;
    }
}

// When the outstanding control frames are to be sent again.
Time Receiver::probe_deadline() const {
    return control_number_ == kNoPacket ? kNever
                                        : control_sent_time_ + rtt_.probe_timeout(kMaxAckDelay, probe_count_);
}

// A request need not wait for the end of the handshake: a server may send right after its Initial (RFC
// 9001 4.1.4).
bool Receiver::may_send() const {
    return phase_ == Phase::connected || (phase_ == Phase::accepting && client_);
}

bool Receiver::poll_datagram(Time now, Datagram& out) {
    if (phase_ == Phase::accepting && handshake_.poll_datagram(now, out)) return true;
    Time timeout = phase_ == Phase::accepting ? handshake_.deadline() : kNever;
    if (may_send()) {
        if (send_limits_ || send_handshake_done_ || acks_.deadline() <= now || request_due() ||
            extra_ack_due_) {
            send_packet(now, out);
            return true;
        }
        timeout = std::min({timeout, acks_.deadline(), probe_deadline(), extra_ack_time_});
        if (client_) timeout = std::min(timeout, client_->next_timeout());
    }
    next_timeout_ = std::max(timeout, now);
    return false;
}

void Receiver::send_packet(Time now, Datagram& out) {
    Writer writer(out);
    const std::uint64_t number = next_number_++;
    const std::size_t number_bytes =
        packet_number_bytes(largest_acked_ == kNoPacket ? number + 1 : number - largest_acked_);
    write_short_header(writer, peer_id_, number, number_bytes);
    const bool control = send_limits_ || send_handshake_done_ || request_due();
    const bool extra_ack = !control && extra_ack_due_ && acks_.deadline() > now;
    if (extra_ack) extra_ack_due_ = false;
    // A packet with newer control frames supersedes the outstanding one, so it repeats a HANDSHAKE_DONE
    // and a request that are not acknowledged yet.
    const bool handshake_done = control && !handshake_done_acked_ && phase_ == Phase::connected;
    const bool request = control && client_ && client_->asked() > acked_requests_;
    bool max_data = send_limits_;
    if (extra_ack || (acks_.pending() && !(control && acknowledges_alone_))) {
        acks_.write(writer, now,
                    control                  ? kControlRoom + (request ? kRequestRoom : 0)
                    : acks_for_max_data_ > 0 ? kMaxDataRoom
                                             : 0,
                    !extra_ack);
        max_data |= acks_for_max_data_ > 0 && ++ack_frames_ % acks_for_max_data_ == 0;
    }
    if (handshake_done) writer.byte(frame_type::handshake_done);
    if (max_data) {
        writer.byte(frame_type::max_data);
        writer.varint(limit_);
    }
    if (send_limits_) {
        writer.byte(frame_type::max_stream_data);
        writer.varint(kStreamId);
        writer.varint(limit_);
    }
    std::size_t end = writer.position();
    if (request) {
        end = write_request(writer);
        sent_requests_ = control_requests_ = client_->asked();
    }
    if (control) {
        control_has_handshake_done_ = handshake_done;
        control_number_ = number;
        control_sent_time_ = now;
        send_limits_ = false;
        send_handshake_done_ = false;
        if (probe_timeout_ > 0) restart_extra_ack(now);
    }
    // RFC 9001 5.4.2: at least four bytes of packet number and payload.
    const std::size_t size = std::max(end, 1 + kConnectionIdBytes + number_bytes + 4);
    out.prefix_bytes = static_cast<std::uint8_t>(writer.position());
    out.size_bytes = static_cast<std::uint16_t>(size + kTagBytes);
    out.ecn = Ecn::not_ect;
    out.sealed_number = static_cast<std::uint32_t>(number);
}

// Writes the requests that are not acknowledged, as far as they fit into the packet. Returns where the frame
// ends; everything after the prefix is zero.
std::size_t Receiver::write_request(Writer& writer) const {
    const std::uint64_t room =
        max_datagram_bytes_ - kTagBytes - writer.position() - (kRequestRoom - kRequestBytes);
    const std::uint64_t length = std::min(room, request_size_ * (client_->asked() - acked_requests_));
    writer.byte(frame_type::stream | frame_type::stream_offset | frame_type::stream_length);
    writer.varint(kRequestStreamId);
    writer.varint(request_size_ * acked_requests_);
    writer.varint(length);
    const std::size_t content = writer.position();
    writer.big_endian(client_->requested_bytes(), kRequestBytes);
    return content + length;
}

void Receiver::add_statistics(Time now, FlowStatistics& statistics) const {
    if (client_) client_->add_statistics(now, statistics);
    statistics.completion = completion_;
    statistics.received_packets = received_packets_;
    statistics.received_bytes = received_bytes_;
    statistics.goodput_bytes = goodput_bytes_;
    statistics.receive_rate_bins = rates(now).count;
    statistics.receive_rate_variance = rates(now).variance();
}

void Receiver::add_state(FlowState& state) const {
    state.completion = completion_;
    state.received_packets = received_packets_;
    state.sample.received_bytes = received_bytes_;
}

}  // namespace quicgym::quic
