// The sending endpoint of a QUIC connection. It puts packets together and composes what decides about them:
// the handshake, the stream, loss recovery (RFC 9002), delivery-rate samples, pacing, and the congestion
// controller that it asks.
//
// Driven as sim/quic/endpoint.hpp says.
#pragma once

#include <cstdint>

#include "controllers/controller.hpp"
#include "sim/base/random.hpp"
#include "sim/base/value_pointer.hpp"
#include "sim/quic/ack_tracker.hpp"
#include "sim/quic/application.hpp"
#include "sim/quic/client.hpp"
#include "sim/quic/datagram.hpp"
#include "sim/quic/endpoint.hpp"
#include "sim/quic/event_log.hpp"
#include "sim/quic/frames.hpp"
#include "sim/quic/handshake.hpp"
#include "sim/quic/lost_chunks.hpp"
#include "sim/quic/recovery/delivery_rate.hpp"
#include "sim/quic/recovery/loss_recovery.hpp"
#include "sim/quic/recovery/pacer.hpp"
#include "sim/quic/send_limits.hpp"
#include "sim/quic/send_stream.hpp"
#include "sim/quic/sender_statistics.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::quic {

class Sender {
public:
    // Opens the connection at `start`; `connection` is its number among those of the two hosts. Throws
    // std::invalid_argument for an unknown controller or parameter.
    Sender(const Flow& flow, std::size_t flow_index, std::uint64_t seed, Time start,
           std::uint64_t connection = 0);

    Receipt on_datagram(Time now, const DatagramView& datagram);
    void on_timeout(Time now);
    bool poll_datagram(Time now, Datagram& out);
    Time next_timeout() const { return next_timeout_; }

    // Takes effect at `now`, but for the departure of the next packet where that is paced already;
    // poll_datagram must follow. Throws like Controller::set_parameters.
    void set_parameters(Time now, const ParameterValues& values);

    // Tells the receiving application of captured frames from now on; null: nobody.
    void show_frames_to(Client* viewer) { viewer_ = viewer; }

    bool closed() const { return phase_ == Phase::closed; }
    const Controller& controller() const { return *controller_; }
    std::uint64_t lost_packets() const { return recovery_.lost_packets(); }  // declared lost
    bool ecn_capable() const { return ecn_ != Ecn::not_ect; }

    // Keeps events from now on: before the first packet for a whole log.
    void record_events() { events_ = std::make_unique<EventLog>(); }
    const std::vector<SenderEvent>& events() const;  // empty without record_events()

    TraceSample sample(Time now) const;  // received_bytes is the host's to fill in
    void add_statistics(Time now, FlowStatistics& statistics) const;
    void mark(Time now, FlowTotals& totals);  // as SenderStatistics::mark
    void add_state(Time now, FlowState& state) const;

private:
    enum class Phase : std::uint8_t { idle, connecting, connected, closing, closed };
    struct Handler;

    TraceSample sample(Time now, ControllerMode mode) const;
    void on_handshake_reply(Time now, const AckFrame& ack);
    void on_ack(Time now, const AckFrame& ack);
    std::uint64_t detect_losses(Time now);
    void on_credit(Time now);
    void close(Time now);

    bool poll_handshake(Time now, Datagram& out);
    std::size_t begin_packet(Writer& writer, Time now, bool ack_eliciting);
    void finish_packet(Time now, const Writer& writer, Datagram& out, std::size_t size, StreamChunk chunk,
                       bool ack_eliciting);
    // For every packet: only the choice is to be inlined.
    [[gnu::always_inline]] void send_data(Time now, Datagram& out, Written written);
    [[gnu::noinline]] void send_stream_data(Time now, Datagram& out, Written written);
    [[gnu::cold, gnu::noinline]] void send_lost_data(Time now, Datagram& out, Written written);
    [[gnu::cold, gnu::noinline]] void send_again(const SentPacket& packet);
    void send_control(Time now, Datagram& out, bool ack_eliciting);
    void arm_timer(Time now, Written written);
    [[gnu::cold, gnu::noinline]] void capture_frame(Time now);

    bool window_has_room() const {
        return recovery_.in_flight_bytes() + segment_bytes_ <= controller_->window_bytes();
    }
    bool transfer_complete() const;
    Ecn codepoint() const;
    void watch_window(Time now) { statistics_.on_window(now, controller_->window_bytes()); }

    // Writes to the event log, if the flow has one.
    void note_metrics(Time now) {
        if (events_) [[unlikely]]
            log_metrics(now);
    }
    [[gnu::cold, gnu::noinline]] void log_metrics(Time now);
    [[gnu::cold, gnu::noinline]] void log_sent(Time now, std::uint64_t bytes, StreamChunk chunk,
                                               bool ack_eliciting);
    [[gnu::cold, gnu::noinline]] void log_ack(Time now, const AckFrame& ack);
    [[gnu::cold, gnu::noinline]] void log_lost(Time now, std::uint64_t number, const SentPacket& packet);

    // Read or written for every packet first.
    ValuePointer<Controller> controller_;
    LossRecovery recovery_;
    DeliveryRate delivery_rate_;
    Pacer pacer_;
    SendStreams stream_;
    bool paces_initial_window_;
    bool retransmits_at_once_;
    ValuePointer<LostChunkPackets> lost_chunks_;  // there: all that is lost goes into one datagram
    ValuePointer<EventLog> events_;               // null: nobody wants one
    std::uint64_t max_datagram_bytes_;
    std::uint64_t segment_bytes_;  // a full packet as window and controller count it
    Time next_timeout_;
    Phase phase_ = Phase::idle;
    bool ecn_wanted_;                // by the flow
    Ecn ecn_;                        // of its packets
    bool acknowledges_alone_;        // ACK frames beside others settle nothing
    std::uint16_t uncounted_bytes_;  // of each datagram, not in flight
    AckTracker acks_;
    ApplicationSource application_;
    Client* viewer_ = nullptr;
    DataBlocked data_blocked_;
    SendBuffer send_buffer_;
    Random random_;  // the controller's
    Time start_;
    Time stop_;
    std::uint64_t peer_id_;
    Handshake handshake_;
    AckFrame ack_scratch_;
    SenderStatistics statistics_;
};
static_assert(Endpoint<Sender>);

}  // namespace quicgym::quic
