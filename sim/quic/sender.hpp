// The sending endpoint of a QUIC connection: handshake, loss recovery (RFC 9002), pacing,
// delivery-rate sampling, and the congestion controller that it asks.
//
// Driven as sim/quic/endpoint.hpp says.
#pragma once

#include <cstdint>
#include <memory>

#include "controllers/controller.hpp"
#include "sim/base/random.hpp"
#include "sim/base/rate_bins.hpp"
#include "sim/base/time_integral.hpp"
#include "sim/quic/ack_tracker.hpp"
#include "sim/quic/application.hpp"
#include "sim/quic/datagram.hpp"
#include "sim/quic/endpoint.hpp"
#include "sim/quic/frames.hpp"
#include "sim/quic/recovery/rtt_estimator.hpp"
#include "sim/quic/recovery/sent_packets.hpp"
#include "sim/quic/rtt_histogram.hpp"
#include "sim/quic/send_stream.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::quic {

class Sender {
public:
    // Opens the connection at `start`. Throws std::invalid_argument for an unknown controller or
    // parameter.
    Sender(const Flow& flow, std::size_t flow_index, std::uint64_t seed, Time start);

    Receipt on_datagram(Time now, const DatagramView& datagram);
    void on_timeout(Time now);
    bool poll_datagram(Time now, Datagram& out);
    Time next_timeout() const { return next_timeout_; }

    // Takes effect at `now`, but for the departure of the next packet where that is paced already;
    // poll_datagram must follow. Throws like Controller::set_parameters.
    void set_parameters(Time now, const ParameterValues& values);

    bool closed() const { return phase_ == Phase::closed; }
    const Controller& controller() const { return *controller_; }

    TraceSample sample(Time now) const;  // received_bytes is the host's to fill in
    void add_statistics(Time now, FlowStatistics& statistics) const;
    void add_state(Time now, FlowState& state) const;

private:
    enum class Phase : std::uint8_t { idle, connecting, connected, closing, closed };
    struct Handler;

    // sender.cpp: connection, sending
    void on_handshake_reply(Time now, const AckFrame& ack);
    void close(Time now);
    void watch_window(Time now) { window_.set(now, controller_->window_bytes()); }
    bool poll_handshake(Time now, Datagram& out);
    std::size_t begin_packet(Writer& writer, Time now, std::size_t reserve);
    void finish_packet(Time now, const Writer& writer, Datagram& out, std::size_t size, StreamChunk chunk,
                       bool ack_eliciting);
    void send_stream_data(Time now, Datagram& out);
    void send_control(Time now, Datagram& out, bool ack_eliciting);
    void prepare_probe();
    void mark_application_limited();
    void arm_timer(Time now);
    bool transfer_complete() const;
    Time probe_deadline() const;

    // loss_recovery.cpp
    void on_ack(Time now, const AckFrame& ack);
    std::uint64_t detect_losses(Time now);
    void resolve_oldest(Time now);
    RateSample take_rate_sample(Time now, const SentPacket& newest);
    std::uint64_t watch_send_buffer(Time now);

    // Read or written for every packet.
    std::unique_ptr<Controller> controller_;
    SentPackets sent_;
    SendStream stream_;
    std::uint64_t in_flight_ = 0;
    std::uint64_t max_datagram_bytes_;
    Time next_send_ = 0;       // pacing
    double paced_rate_ = 0.0;  // the rate behind pacing_ns_per_byte_
    double pacing_ns_per_byte_ = 0.0;
    Time next_timeout_;
    Time loss_time_ = kNever;  // RFC 9002 A.3
    Time last_ack_eliciting_sent_ = 0;
    std::uint32_t probe_count_ = 0;  // pto_count
    std::uint32_t probes_to_send_ = 0;
    Phase phase_ = Phase::idle;
    bool ecn_ = false;

    // Delivery-rate estimation.
    std::uint64_t delivered_ = 0;
    Time delivered_time_ = 0;
    Time first_sent_time_ = 0;
    std::uint64_t app_limited_until_ = 0;  // 0: not application-limited
    std::uint64_t next_round_delivered_ = 0;

    // RFC 9002.
    RttEstimator rtt_;
    std::uint64_t largest_acked_ = kNoPacket;
    Time first_rtt_time_ = kNever;  // persistent congestion needs a sample from before
    Time lost_run_start_ = kNever;  // send time of the first packet of the current run of losses
    std::uint64_t ecn_ce_count_ = 0;
    AckFrame ack_scratch_;

    AckTracker acks_;
    ApplicationSource application_;
    std::uint64_t send_buffer_bytes_;
    std::uint64_t send_buffer_events_ = 0;  // how often it became full
    bool send_buffer_full_ = false;
    Random random_;
    Time start_;
    Time stop_;

    // Handshake.
    std::uint64_t initial_number_ = 0;
    Time initial_sent_time_ = 0;
    Time initial_deadline_ = kNever;
    bool send_initial_ = false;
    std::uint64_t blocked_limit_ = kNoPacket;  // the limit that the last DATA_BLOCKED named
    std::uint64_t counted_limit_ = kNoPacket;  // the same, whether it is to be sent again or not

    // Totals.
    std::uint64_t sent_packets_ = 0;
    std::uint64_t sent_bytes_ = 0;
    std::uint64_t lost_packets_ = 0;
    std::uint64_t lost_bytes_ = 0;
    std::uint64_t congestion_events_ = 0;
    std::uint64_t persistent_congestion_events_ = 0;
    std::uint64_t probe_timeouts_ = 0;
    std::uint64_t blocked_events_ = 0;
    Time closed_time_ = kNever;
    TimeIntegral window_;
    RateBins sent_bins_;
    RttHistogram rtt_histogram_;
};
static_assert(Endpoint<Sender>);

}  // namespace quicgym::quic
