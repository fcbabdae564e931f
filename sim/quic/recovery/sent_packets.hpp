// Sent packets that are neither acknowledged nor lost yet: a ring indexed by packet number.
#pragma once

#include <cstdint>

#include "sim/base/ring.hpp"
#include "sim/base/time.hpp"

namespace quicgym::quic {

enum class PacketState : std::uint8_t { outstanding, acknowledged, lost, not_ack_eliciting };

// The record of a packet until it is acknowledged or lost. The delivery-rate fields are those of
// draft-cheng-iccrg-delivery-rate-estimation-02, section 3.2, and of draft-ietf-ccwg-bbr-06, 4.1.2.1.2. 64
// bytes: one cache line.
struct SentPacket {
    Time sent_time;
    Time first_sent_time;           // of the flight that this packet belongs to
    Time delivered_time;            // when delivered_bytes was reached
    std::uint64_t delivered_bytes;  // when this packet was sent
    std::uint64_t lost_bytes;       // declared lost by then
    std::uint64_t in_flight_bytes;  // then, this packet included
    std::uint64_t stream_offset;
    std::uint16_t size_bytes;
    std::uint16_t stream_bytes;  // 0: no STREAM frame
    PacketState state;
    bool app_limited;
    bool repaired;  // a probe has its data
};
static_assert(sizeof(SentPacket) == 64);

class SentPackets {
public:
    std::uint64_t next() const { return next_; }      // the number that the next packet gets
    std::uint64_t oldest() const { return oldest_; }  // the oldest that is not resolved
    bool empty() const { return oldest_ == next_; }

    SentPacket& operator[](std::uint64_t packet_number) { return ring_[packet_number]; }
    const SentPacket& operator[](std::uint64_t packet_number) const { return ring_[packet_number]; }

    SentPacket& push() {
        ring_.make_room(oldest_, next_);
        return ring_[next_++];
    }

    void pop_oldest() { ++oldest_; }

    // The number of the first packet, in place of 0.
    void begin_at(std::uint64_t packet_number) { oldest_ = next_ = packet_number; }

private:
    Ring<SentPacket> ring_;
    std::uint64_t oldest_ = 0;
    std::uint64_t next_ = 0;
};

}  // namespace quicgym::quic
