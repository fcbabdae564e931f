// Remembers the content of packets that carry several chunks of the stream: all lost data in one datagram.
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/ring.hpp"
#include "sim/quic/send_stream.hpp"

namespace quicgym::quic {

// The largest UDP payload of an IPv4 packet.
inline constexpr std::uint64_t kLargestDatagramBytes = 65'535 - 20 - 8;

struct LostChunks {
    static constexpr std::size_t kMost = 14;  // about as many as a datagram's prefix takes

    std::uint64_t packet_number = 0;
    std::size_t count = 0;
    std::array<StreamChunk, kMost> chunks{};
};

class LostChunkPackets {
public:
    // In a packet's record, in place of the length of its one chunk; the offset is then the position here.
    static constexpr std::uint16_t kSeveralChunks = UINT16_MAX;

    // A place for the next packet; those of packets before `oldest_number` may be forgotten.
    std::uint64_t add(std::uint64_t packet_number, std::uint64_t oldest_number) {
        while (begin_ != end_ && packets_[begin_].packet_number < oldest_number) ++begin_;
        packets_.make_room(begin_, end_);
        packets_[end_].packet_number = packet_number;
        packets_[end_].count = 0;
        return end_++;
    }
    LostChunks& operator[](std::uint64_t position) { return packets_[position]; }

private:
    Ring<LostChunks> packets_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
};

}  // namespace quicgym::quic
