// The receiving endpoint of a QUIC connection: acknowledgements, reassembly, flow control.
//
// Driven as sim/quic/endpoint.hpp says.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/base/rate_bins.hpp"
#include "sim/base/value_pointer.hpp"
#include "sim/quic/ack_tracker.hpp"
#include "sim/quic/client.hpp"
#include "sim/quic/datagram.hpp"
#include "sim/quic/endpoint.hpp"
#include "sim/quic/frames.hpp"
#include "sim/quic/handshake.hpp"
#include "sim/quic/range_set.hpp"
#include "sim/quic/recovery/rtt_estimator.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::quic {

class Receiver {
public:
    // `start` is the flow's, with jitter; `client` is the receiving application, null where it does not ask
    // for anything; `connection` is the connection's number among those of the two hosts.
    Receiver(const Flow& flow, Time start, std::unique_ptr<Client> client = nullptr,
             std::uint64_t connection = 0);

    Receipt on_datagram(Time now, const DatagramView& datagram);
    void on_timeout(Time now);
    bool poll_datagram(Time now, Datagram& out);
    Time next_timeout() const { return next_timeout_; }

    std::uint64_t received_bytes() const { return received_bytes_; }  // UDP payload, duplicates included
    Time completion() const { return completion_; }  // of a sized transfer; kNever: bytes are missing
    const Client* client() const { return client_.get(); }
    Client* client() { return client_.get(); }
    void add_statistics(Time now, FlowStatistics& statistics) const;
    RateSums rates(Time now) const { return received_bins_.at(now, received_bytes_); }
    void add_state(FlowState& state) const;

private:
    enum class Phase : std::uint8_t { listening, accepting, connected, closed };
    struct Handler;

    void on_initial(Time now, std::uint64_t number);
    // Almost every packet needs this, so it is always inlined, like read_stream_frame().
    [[gnu::always_inline]] void on_stream(Time now, const StreamFrame& frame);
    [[gnu::cold, gnu::noinline]] void on_other_stream(std::uint64_t stream_id, std::uint64_t offset,
                                                      std::uint64_t end);
    void grant(std::uint64_t consumed);
    void on_ack(Time now, const AckFrame& ack);
    void send_packet(Time now, Datagram& out);
    bool may_send() const;
    bool request_due() const { return client_ && client_->asked() > sent_requests_; }
    std::size_t write_request(Writer& writer) const;
    Time probe_deadline() const;
    [[gnu::cold, gnu::noinline]] void restart_extra_ack(Time now);

    AckTracker acks_;
    RangeSet received_stream_;
    std::uint64_t window_bytes_;
    std::uint64_t window_update_bytes_;  // MAX_DATA leaves when it would raise the limit by more
    std::uint64_t limit_;                // what MAX_DATA and MAX_STREAM_DATA have granted
    std::uint64_t burst_consumed_ = 0;
    std::uint64_t next_number_ = 0;
    std::uint64_t largest_acked_ = kNoPacket;
    Time next_timeout_ = kNever;
    Phase phase_ = Phase::listening;

    // Control frames are few and each supersedes the one before it, so that one outstanding packet is
    // all that there is to recover: whatever it carried is sent again, up to date, after a timeout.
    bool send_limits_ = false;
    bool send_handshake_done_ = false;
    bool handshake_done_acked_ = false;
    std::uint64_t control_number_ = kNoPacket;  // the latest packet that holds control frames
    bool control_has_handshake_done_ = false;
    Time control_sent_time_ = 0;
    std::uint64_t control_requests_ = 0;  // it holds the requests up to this number
    std::uint64_t sent_requests_ = 0;     // up to this number none is to be sent (again)
    std::uint64_t acked_requests_ = 0;
    std::uint32_t probe_count_ = 0;
    RttEstimator rtt_;

    // Habits of the flow (sim/scenario.hpp).
    bool acknowledges_alone_;
    std::uint64_t acks_for_max_data_;
    std::uint64_t ack_frames_ = 0;
    Time probe_timeout_;
    Time extra_ack_time_ = kNever;  // when silence brings an additional ACK
    bool extra_ack_due_ = false;
    std::uint32_t extra_acks_ = 0;  // since a packet of this end was acknowledged

    AckFrame ack_scratch_;

    std::uint64_t peer_id_;
    Handshake handshake_;

    ValuePointer<Client> client_;
    std::uint64_t request_size_;
    std::uint64_t max_datagram_bytes_;

    std::uint64_t fin_offset_ = kNoPacket;
    Time completion_ = kNever;
    std::uint64_t received_packets_ = 0;
    std::uint64_t received_bytes_ = 0;
    std::uint64_t goodput_bytes_ = 0;
    RateBins received_bins_;
    bool has_burst_stream_;  // the flow's bursts have a stream of their own
    RangeSet burst_stream_;
};
static_assert(Endpoint<Receiver>);

}  // namespace quicgym::quic
