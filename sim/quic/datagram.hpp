// A UDP payload as the endpoints hand it to a network.
//
// The simulation carries no application data: a STREAM frame's content, the AEAD tag and trailing
// padding are zeros that are counted but not stored. A datagram is therefore a size and the bytes
// up to the last one that is not implied; every byte after the prefix is zero.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quicgym::quic {

// Holds a short header, an ACK frame with kMaxAckRanges ranges and the control frames beside it.
inline constexpr std::size_t kMaxPrefixBytes = 104;

enum class Ecn : std::uint8_t { not_ect = 0, ect_1 = 1, ect_0 = 2, ce = 3 };

struct Datagram {
    std::uint16_t size_bytes = 0;
    std::uint8_t prefix_bytes = 0;
    Ecn ecn = Ecn::not_ect;
    std::uint8_t prefix[kMaxPrefixBytes];
};

struct DatagramView {
    const std::uint8_t* prefix;
    std::size_t prefix_bytes;
    std::size_t size_bytes;  // at least prefix_bytes
    Ecn ecn = Ecn::not_ect;
};

inline DatagramView view(const Datagram& datagram) {
    return {datagram.prefix, datagram.prefix_bytes, datagram.size_bytes, datagram.ecn};
}

}  // namespace quicgym::quic
