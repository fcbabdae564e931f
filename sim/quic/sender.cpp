#include "sim/quic/sender.hpp"

#include <algorithm>

#include "controllers/catalogue.hpp"
#include "controllers/envelope.hpp"
#include "controllers/guard.hpp"

namespace quicgym::quic {

namespace {

// Everything around a stream chunk at its largest: short header, STREAM type, id and offset, tag.
constexpr std::uint64_t kLargestOverheadBytes = 1 + kConnectionIdBytes + 4 + 1 + 1 + 8 + kTagBytes;
// An ACK frame leaves so much room for the frame after it; the header of a STREAM frame is the longest.
constexpr std::size_t kFrameRoom = 1 + 1 + 8;
// RFC 9001 5.4.2: header protection samples four bytes after the packet number's start.
constexpr std::size_t kSmallestPayload = 4;

std::uint64_t segment_of(const Flow& flow) {
    return flow.segment_bytes > 0 ? flow.segment_bytes : flow.max_datagram_bytes;
}

std::unique_ptr<Controller> controller_of(const Flow& flow) {
    const std::uint64_t segment_bytes = segment_of(flow);
    std::unique_ptr<Controller> controller =
        flow.controller_factory ? flow.controller_factory(flow.parameters, segment_bytes)
                                : make_controller(flow.controller, flow.parameters, segment_bytes);
    if (flow.guard) controller = std::make_unique<Guarded>(std::move(controller));
    if (flow.safe_envelope) controller = std::make_unique<Enveloped>(std::move(controller));
    return controller;
}

}  // namespace

Sender::Sender(const Flow& flow, std::size_t flow_index, std::uint64_t seed, Time start,
               std::uint64_t connection)
    : controller_(controller_of(flow)),
      recovery_({.peers_max_ack_delay = flow.max_ack_delay,
                 .probe_timeout = flow.probe_timeout,
                 .by_time = !flow.losses_by_count,
                 .adaptive = flow.adaptive_reordering && !flow.losses_by_count}),
      delivery_rate_(flow.stale_rate_samples),
      pacer_(flow.offload_packets),
      stream_(flow.flow_control_window_bytes, flow.application.burst_own_stream),
      paces_initial_window_(flow.pace_initial_window),
      retransmits_at_once_(flow.burst_retransmission),
      lost_chunks_(flow.burst_retransmission && flow.mtu_bytes > 0 ? std::make_unique<LostChunkPackets>()
                                                                   : nullptr),
      max_datagram_bytes_(flow.max_datagram_bytes),
      segment_bytes_(segment_of(flow)),
      next_timeout_(std::min(start, flow.stop)),
      ecn_wanted_(flow.ecn),
      ecn_(codepoint()),
      acknowledges_alone_(flow.acknowledges_alone),
      uncounted_bytes_(static_cast<std::uint16_t>(flow.uncounted_bytes)),
      acks_(flow.acknowledges_alone ? AckTracker(flow) : AckTracker()),
      application_(flow.application, flow.max_datagram_bytes - kLargestOverheadBytes, start),
      send_buffer_(flow.send_buffer_bytes),
      random_(seed, RandomPurpose::controller, flow_index),
      start_(start),
      stop_(flow.stop),
      peer_id_(connection_id(kServerConnectionId, connection)),
      handshake_(Handshake::Side::client, connection),
      statistics_(start, flow.stop, controller_->window_bytes()) {}

// ---- connection ----------------------------------------------------------------------------

struct Sender::Handler : FrameHandler {
    Sender& sender;
    Time now;
    PacketType packet;

    Handler(Sender& s, Time t, PacketType p) : sender(s), now(t), packet(p) {}

    void on_ack(const AckFrame& ack) {
        if (sender.events_) [[unlikely]]
            sender.log_ack(now, ack);
        if (packet == PacketType::initial) {
            sender.on_handshake_reply(now, ack);
        } else {
            sender.on_ack(now, ack);
        }
    }
    void on_stream(const StreamFrame& stream) {
        if (stream.stream_id == kRequestStreamId) sender.application_.on_request(stream.requested_bytes);
    }
    void on_max_data(std::uint64_t limit) {
        sender.stream_.raise_data_limit(limit);
        sender.on_credit(now);
    }
    void on_max_stream_data(std::uint64_t stream_id, std::uint64_t limit) {
        if (stream_id != kStreamId) return;
        sender.stream_.raise_stream_limit(limit);
        sender.on_credit(now);
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
    if (header.type == PacketType::initial) {
        if (events_) [[unlikely]] {
            events_->add(now, SenderEventKind::packet_received,
                         {header.truncated_packet_number, datagram.size_bytes, kInitialFlag});
        }
        return {read_frames(reader, header.type, handler, ack_scratch_, ack_eliciting)};
    }

    // Without the handshake's keys a 1-RTT packet cannot be read (RFC 9001 5.7).
    if (phase_ != Phase::connected) return {};
    const std::uint64_t number = decode_packet_number(
        acks_.expected_packet_number(), header.truncated_packet_number, header.packet_number_bytes);
    if (!opens(datagram, number) || !acks_.is_new(number)) return {};
    if (events_) [[unlikely]]
        events_->add(now, SenderEventKind::packet_received, {number, datagram.size_bytes, 0});
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
        handshake_.send_initial();
    } else if (phase_ == Phase::connecting) {
        handshake_.on_timeout(now);
    } else if (phase_ == Phase::connected) {
        if (recovery_.timeout() <= now) {
            if (recovery_.loss_timer_armed()) {
                detect_losses(now);
                watch_window(now);
                note_metrics(now);
            } else {
                recovery_.on_probe_timeout();
            }
        }
        if (controller_->timer() <= now) {
            controller_->fire_timer(now);
            watch_window(now);
            note_metrics(now);
        }
    }
}

void Sender::on_credit(Time now) {
    if (stream_.next_offset() < stream_.limit()) data_blocked_.end(now);
}

void Sender::close(Time now) {
    phase_ = Phase::closed;
    data_blocked_.end(now);
    statistics_.on_close(now);
}

void Sender::on_handshake_reply(Time now, const AckFrame& ack) {
    if (phase_ != Phase::connecting) return;
    const Time sample = handshake_.rtt_sample(now, ack.ranges[0].largest);
    if (sample > 0) {
        recovery_.on_handshake_rtt(now, sample);
        statistics_.on_rtt_sample(sample);
    }
    phase_ = Phase::connected;
    delivery_rate_.start(now);
    // RFC 9002 7.7 and 7.2: a burst of the initial window, as Linux, Chromium and quic-go send it.
    const std::uint64_t burst_bytes = initial_window_bytes(max_datagram_bytes_);
    pacer_.start(now, paces_initial_window_ ? 0 : std::min(burst_bytes, controller_->window_bytes()));
    AckEvent event;
    event.now = now;
    event.rtt = event.measured_rtt = sample;
    event.smoothed_rtt = recovery_.rtt().smoothed();
    event.min_rtt = recovery_.rtt().minimum();
    event.largest_acked_sent_time = handshake_.sent_time();
    event.unsent_bytes = application_.written(now).total();
    event.random = &random_;
    controller_->on_ack(event);
    watch_window(now);
    note_metrics(now);
}

// ---- acknowledgements ----------------------------------------------------------------------

void Sender::on_ack(Time now, const AckFrame& ack) {
    const std::uint64_t prior_in_flight = recovery_.in_flight_bytes();
    const LossRecovery::NewlyAcked acked = recovery_.on_ack(now, ack);
    if (recovery_.find_spurious_losses(ack)) {
        controller_->on_spurious_loss(now);
        watch_window(now);
    }
    if (acked.newest == nullptr) return;
    const SentPacket& newest = *acked.newest;

    if (acked.rtt_sample != kNever) statistics_.on_rtt_sample(acked.rtt_sample);
    RateSample sample = delivery_rate_.on_acked(now, newest, acked.bytes, recovery_.rtt().minimum());
    const bool round_start = delivery_rate_.begins_round(newest);

    // Before losses, as in RFC 9002 A.7: persistent congestion forgets the recovery period, and a mark of the
    // same ACK would cut the window again.
    if (const std::uint64_t marked = recovery_.on_ecn_counts(ack); marked > 0)
        controller_->on_ecn({now, newest.sent_time, marked, recovery_.in_flight_bytes()});
    const std::uint64_t newly_lost_bytes = detect_losses(now);
    sample.lost_bytes = recovery_.lost_bytes() - newest.lost_bytes;

    const std::uint64_t unsent_bytes = application_.written(now).total() - stream_.next_offset();
    send_buffer_.watch(unsent_bytes);
    // With every field in its place: clearing the event first costs 5 ns for each packet.
    const AckEvent event{
        .now = now,
        .rtt = acked.rtt,
        .measured_rtt = acked.rtt_sample == kNever ? 0 : acked.rtt_sample,
        .smoothed_rtt = recovery_.rtt().smoothed(),
        .min_rtt = recovery_.rtt().minimum(),
        .largest_acked_sent_time = newest.sent_time,
        .delivered_bytes = delivery_rate_.delivered_bytes(),
        .newly_acked_bytes = acked.bytes,
        .newly_acked_packets = acked.packets,
        .newly_lost_bytes = newly_lost_bytes,
        .prior_in_flight_bytes = prior_in_flight,
        .in_flight_bytes = recovery_.in_flight_bytes(),
        .blocked_events = data_blocked_.events() + send_buffer_.events(),
        .unsent_bytes = unsent_bytes,
        .sample = sample,
        .app_limited = delivery_rate_.window_unused(),
        .no_unsent_data = delivery_rate_.app_limited(),
        .round_start = round_start,
        .random = &random_,
    };
    controller_->on_ack(event);
    watch_window(now);
    note_metrics(now);
}

// Returns the bytes declared lost.
std::uint64_t Sender::detect_losses(Time now) {
    const LossEvent event = recovery_.detect_losses(now, [&](std::uint64_t number, const SentPacket& packet) {
        controller_->on_packet_lost({now, packet.sent_time, number, packet.size_bytes, packet.in_flight_bytes,
                                     recovery_.lost_bytes() - packet.lost_bytes,
                                     delivery_rate_.delivered_bytes(), packet.app_limited});
        if (events_) [[unlikely]]
            log_lost(now, number, packet);
        if (packet.stream_bytes == 0) {
            data_blocked_.on_lost();  // it may have been the DATA_BLOCKED
        } else if (!packet.repaired) {
            send_again(packet);
        }
    });
    if (event.lost_packets > 0) controller_->on_loss(event);
    if (recovery_.forget_resolved()) controller_->on_persistent_congestion(now);
    return event.lost_bytes;
}

// ---- sending -------------------------------------------------------------------------------

bool Sender::poll_handshake(Time now, Datagram& out) {
    if (phase_ == Phase::closing) {
        Writer writer(out);
        begin_packet(writer, now, false);
        writer.byte(frame_type::connection_close);
        writer.varint(0);  // NO_ERROR
        writer.varint(0);  // caused by no frame
        writer.varint(0);  // no reason phrase
        finish_packet(now, writer, out, writer.position(), {}, false);
        close(now);
        return true;
    }
    if (phase_ == Phase::connecting && handshake_.poll_datagram(now, out)) {
        statistics_.on_packet_sent(now, out.size_bytes);
        if (events_) [[unlikely]] {
            events_->add(now, SenderEventKind::packet_sent,
                         {handshake_.sent_number(), out.size_bytes, 0, 0, kInitialFlag | kAckElicitingFlag});
        }
        return true;
    }
    switch (phase_) {
        case Phase::idle:
            next_timeout_ = std::max(now, std::min(start_, stop_));
            break;
        case Phase::connecting:
            next_timeout_ = std::max(now, std::min(handshake_.deadline(), stop_));
            break;
        default:
            next_timeout_ = kNever;
    }
    return false;
}

bool Sender::poll_datagram(Time now, Datagram& out) {
    if (phase_ != Phase::connected) return poll_handshake(now, out);
    if (application_.next_frame() <= now) [[unlikely]]
        capture_frame(now);
    const Written written = application_.written(now);
    if (recovery_.take_probe()) {
        // RFC 9002 6.2.4: with nothing new to send, a probe carries the oldest unacknowledged data.
        if (!stream_.has_data(written)) {
            if (const SentPacket* packet = recovery_.repair_oldest(); packet != nullptr) send_again(*packet);
        }
        if (stream_.has_data(written)) {
            send_stream_data(now, out, written);
        } else {
            send_control(now, out, true);
        }
        return true;
    }
    if (stream_.has_data(written)) {
        if (pacer_.may_send(now) && window_has_room()) {
            send_data(now, out, written);
            return true;
        }
        if (retransmits_at_once_ && stream_.has_lost()) [[unlikely]] {
            const Pacer before = pacer_;  // new data keeps its pace
            send_data(now, out, written);
            pacer_ = before;
            return true;
        }
    } else if (window_has_room()) {
        if (stream_.blocked(written)) {
            data_blocked_.begin(now);
            if (data_blocked_.due(stream_.limit())) {
                data_blocked_.on_sent(stream_.limit());
                send_control(now, out, true);
                return true;
            }
            delivery_rate_.mark_window_unused(recovery_.in_flight_bytes());
        } else {
            delivery_rate_.mark_app_limited(recovery_.in_flight_bytes());
        }
    }
    if (acks_.deadline() <= now) {
        send_control(now, out, false);
        return true;
    }
    if (application_.finite() && transfer_complete()) {
        phase_ = Phase::closing;
        return poll_handshake(now, out);
    }
    arm_timer(now, written);
    return false;
}

bool Sender::transfer_complete() const {
    return recovery_.in_flight_bytes() == 0 && !stream_.has_lost() &&
           stream_.next_offset() == application_.total_bytes();
}

// Writes the header and, when one is owed, an ACK frame. Returns the packet number's length.
std::size_t Sender::begin_packet(Writer& writer, Time now, bool ack_eliciting) {
    const std::size_t number_bytes = packet_number_bytes(recovery_.unacknowledged_numbers());
    write_short_header(writer, peer_id_, recovery_.next_packet_number(), number_bytes);
    if (acks_.pending()) acks_.write(writer, now, kFrameRoom, !(acknowledges_alone_ && ack_eliciting));
    return number_bytes;
}

inline void Sender::send_data(Time now, Datagram& out, Written written) {
    if (lost_chunks_ && stream_.has_lost()) [[unlikely]] {
        send_lost_data(now, out, written);
    } else {
        send_stream_data(now, out, written);
    }
}

void Sender::send_stream_data(Time now, Datagram& out, Written written) {
    Writer writer(out);
    begin_packet(writer, now, true);
    const std::uint64_t place = stream_.next_chunk_offset(written);
    const std::uint64_t offset = place & ~SendStreams::kSecondStream;
    const std::size_t stream_header = 1 + 1 + (offset > 0 ? varint_bytes(offset) : 0);
    const std::uint64_t room = max_datagram_bytes_ - kTagBytes - writer.position() - stream_header;
    const StreamChunk chunk = stream_.take(room, written);
    const bool fin = application_.finite() && chunk.offset + chunk.length == application_.total_bytes();
    // Without a length field: the frame reaches to the end of the packet.
    writer.byte(static_cast<std::uint8_t>(frame_type::stream | (offset > 0 ? frame_type::stream_offset : 0) |
                                          (fin ? frame_type::stream_fin : 0)));
    writer.byte(
        static_cast<std::uint8_t>(place == offset ? kStreamId : kBurstStreamId));  // a varint of a byte
    if (offset > 0) writer.varint(offset);
    finish_packet(now, writer, out, writer.position() + chunk.length, chunk, true);
}

// All lost data in one datagram, as far as it fits; the network fragments it.
void Sender::send_lost_data(Time now, Datagram& out, Written written) {
    Writer writer(out);
    const std::uint64_t oldest = recovery_.next_packet_number() - recovery_.unresolved_numbers();
    const std::uint64_t position = lost_chunks_->add(recovery_.next_packet_number(), oldest);
    LostChunks& lost = (*lost_chunks_)[position];
    // Without an ACK frame, which comes with the next packet: the prefix is for the chunks.
    write_short_header(writer, peer_id_, recovery_.next_packet_number(),
                       packet_number_bytes(recovery_.unacknowledged_numbers()));
    std::uint64_t room = kLargestDatagramBytes - kTagBytes - writer.position() - (2 + 12 * LostChunks::kMost);
    std::size_t prefix_room = writer.room() - 2;
    std::uint64_t content = 0;
    while (stream_.has_lost() && room > 0 && lost.count < LostChunks::kMost) {
        const std::size_t header = varint_bytes(stream_.next_chunk_offset(written)) + 4;
        if (header > prefix_room) break;
        prefix_room -= header;
        const StreamChunk chunk = stream_.take(room, written);
        lost.chunks[lost.count++] = chunk;
        room -= chunk.length;
        content += chunk.length;
    }
    writer.byte(frame_type::stream_chunks);
    writer.varint(lost.count);
    for (std::size_t i = 0; i < lost.count; ++i) {
        const StreamChunk& chunk = lost.chunks[i];
        const bool fin = application_.finite() && chunk.offset + chunk.length == application_.total_bytes();
        writer.varint(chunk.offset);
        writer.varint(chunk.length << 1 | (fin ? 1U : 0U));
    }
    finish_packet(now, writer, out, writer.position() + content, {position, LostChunkPackets::kSeveralChunks},
                  true);
}

// Marks the content of a lost packet to be sent again.
void Sender::send_again(const SentPacket& packet) {
    if (packet.stream_bytes != LostChunkPackets::kSeveralChunks) {
        stream_.on_lost({packet.stream_offset, packet.stream_bytes});
        return;
    }
    const LostChunks& lost = (*lost_chunks_)[packet.stream_offset];
    for (std::size_t i = 0; i < lost.count; ++i) stream_.on_lost(lost.chunks[i]);
}

// A packet without stream data: DATA_BLOCKED when blocked, PING as a probe, or an ACK alone. In the QUIC
// module for ns-3 a sender's ACK frame comes with MAX_DATA, so that the receiver counts the packet.
void Sender::send_control(Time now, Datagram& out, bool ack_eliciting) {
    Writer writer(out);
    const std::size_t number_bytes = begin_packet(writer, now, ack_eliciting);
    if (ack_eliciting && stream_.blocked(application_.written(now))) {
        writer.byte(frame_type::data_blocked);
        writer.varint(stream_.limit());
    } else if (ack_eliciting) {
        writer.byte(frame_type::ping);
    } else if (acknowledges_alone_) {
        writer.byte(frame_type::max_data);
        writer.varint(stream_.limit());
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
    out.ecn = ecn_;
    out.sealed_number = static_cast<std::uint32_t>(recovery_.next_packet_number());
    statistics_.on_packet_sent(now, datagram_bytes);

    const auto counted =
        static_cast<std::uint16_t>(out.size_bytes - std::min(uncounted_bytes_, out.size_bytes));
    SentPacket& packet = recovery_.on_packet_sent(now, counted, ack_eliciting);
    packet.stream_offset = chunk.offset;
    packet.stream_bytes = static_cast<std::uint16_t>(chunk.length);
    if (events_) [[unlikely]]
        log_sent(now, datagram_bytes, chunk, ack_eliciting);
    if (!ack_eliciting) return;
    delivery_rate_.on_packet_sent(now, recovery_.in_flight_bytes(), recovery_.lost_bytes(), packet);
    pacer_.on_packet_sent(now, datagram_bytes, controller_->pacing_rate());
    controller_->on_packet_sent(now, datagram_bytes, recovery_.in_flight_bytes());
    watch_window(now);
}

void Sender::arm_timer(Time now, Written written) {
    Time timeout =
        std::min(std::min(acks_.deadline(), stop_), std::min(recovery_.timeout(), controller_->timer()));
    timeout = std::min(timeout, application_.next_frame());
    if (!stream_.has_data(written)) {
        timeout = std::min(timeout, application_.next_write());
    } else if (window_has_room()) {
        timeout = std::min(timeout, pacer_.next_send());
    }
    next_timeout_ = std::max(timeout, now);
}

// The controller's rate is the smaller one of its pacing rate and of its window per smoothed RTT.
void Sender::capture_frame(Time now) {
    const double window_rate =
        static_cast<double>(controller_->window_bytes()) / to_seconds(recovery_.rtt().smoothed());
    const double rate = std::min(controller_->pacing_rate(), window_rate);
    const std::uint64_t unsent_bytes = application_.written(now).total() - stream_.next_offset();
    const std::uint64_t frame_bytes = application_.capture(now, rate, unsent_bytes);
    if (viewer_ != nullptr) viewer_->on_frame(now, frame_bytes);
}

void Sender::set_parameters(Time now, const ParameterValues& values) {
    controller_->set_parameters(values);
    ecn_ = codepoint();
    if (phase_ != Phase::closed) {
        watch_window(now);
        note_metrics(now);
    }
    // An idle endpoint keeps its start: nothing that it does depends on the controller yet.
    if (phase_ == Phase::connected) next_timeout_ = now;
}

Ecn Sender::codepoint() const {
    if (controller_->wants_l4s()) return Ecn::ect_1;
    return ecn_wanted_ ? Ecn::ect_0 : Ecn::not_ect;
}

// ---- observation ---------------------------------------------------------------------------

TraceSample Sender::sample(Time now) const {
    return sample(now, controller_->snapshot().mode);
}

TraceSample Sender::sample(Time now, ControllerMode mode) const {
    TraceSample sample{};
    sample.time = now;
    sample.window_bytes = controller_->window_bytes();
    sample.pacing_rate = controller_->pacing_rate();
    sample.rtt = recovery_.rtt().latest();
    sample.smoothed_rtt = recovery_.rtt().has_sample() ? recovery_.rtt().smoothed() : 0;
    sample.in_flight_bytes = recovery_.in_flight_bytes();
    sample.sent_bytes = statistics_.sent_bytes();
    sample.delivered_bytes = delivery_rate_.delivered_bytes();
    sample.lost_bytes = recovery_.lost_bytes();
    sample.mode = mode;
    return sample;
}

void Sender::add_statistics(Time now, FlowStatistics& statistics) const {
    statistics_.add_statistics(now, max_datagram_bytes_, statistics);
    recovery_.add_statistics(statistics);
    statistics.probe_timeouts += handshake_.timeouts();
    statistics.blocked_events = data_blocked_.events();
    statistics.blocked_seconds = to_seconds(data_blocked_.time(now));
    statistics.send_buffer_events = send_buffer_.events();
}

void Sender::mark(Time now, FlowTotals& totals) {
    statistics_.mark(now, max_datagram_bytes_, totals);
}

const std::vector<SenderEvent>& Sender::events() const {
    static const std::vector<SenderEvent> none;
    return events_ ? events_->events() : none;
}

void Sender::log_metrics(Time now) {
    const RttEstimator& rtt = recovery_.rtt();
    const auto ns = [](Time time) { return static_cast<std::uint64_t>(time); };
    events_->add_change(
        now, SenderEventKind::metrics,
        {controller_->window_bytes(), recovery_.in_flight_bytes(), rtt.has_sample() ? ns(rtt.smoothed()) : 0,
         ns(rtt.latest()), ns(rtt.minimum()), static_cast<std::uint64_t>(controller_->pacing_rate())});
    events_->add_change(now, SenderEventKind::mode,
                        {static_cast<std::uint64_t>(controller_->snapshot().mode)});
}

void Sender::log_sent(Time now, std::uint64_t bytes, StreamChunk chunk, bool ack_eliciting) {
    const bool fin = chunk.length > 0 && application_.finite() &&
                     chunk.offset + chunk.length == application_.total_bytes();
    const bool has_several = chunk.length == LostChunkPackets::kSeveralChunks;  // its offset is a position
    events_->add(
        now, SenderEventKind::packet_sent,
        {recovery_.next_packet_number() - 1, bytes,
         has_several ? 0 : chunk.offset & ~SendStreams::kSecondStream, has_several ? 0 : chunk.length,
         (ack_eliciting ? kAckElicitingFlag : 0) | (fin && !has_several ? kFinFlag : 0) |
             ((chunk.offset & SendStreams::kSecondStream) != 0 ? kBurstFlag : 0)});
}

void Sender::log_ack(Time now, const AckFrame& ack) {
    events_->add(now, SenderEventKind::ack_delay, {(ack.delay << kAckDelayExponent) * 1000});
    for (std::size_t i = 0; i < ack.range_count; ++i) {
        events_->add(now, SenderEventKind::acked_range, {ack.ranges[i].smallest, ack.ranges[i].largest});
    }
}

void Sender::log_lost(Time now, std::uint64_t number, const SentPacket& packet) {
    const bool is_reordered = recovery_.is_behind_threshold(number);
    events_->add(now, SenderEventKind::packet_lost, {number, packet.size_bytes, is_reordered ? 0U : 1U});
}

void Sender::add_state(Time now, FlowState& state) const {
    const ControllerSnapshot snapshot = controller_->snapshot();
    state.sample = sample(now, snapshot.mode);
    statistics_.add_state(state);
    state.min_rtt = recovery_.rtt().minimum();
    state.ecn_marks = recovery_.ecn_marks();
    state.set_cycle(snapshot);
}

}  // namespace quicgym::quic
