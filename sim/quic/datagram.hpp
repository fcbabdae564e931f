// A UDP payload as the endpoints hand it to a network.
//
// The simulation carries no application data: a STREAM frame's content and trailing padding are zeros that
// are counted but not stored. A datagram is therefore a size and the bytes up to the last one that is not
// implied; every byte between the prefix and the tag is zero. Of the tag, only what it proves is kept.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quicgym::quic {

// Enough for a short header, an ACK frame with kMaxAckRanges ranges and the control frames next to it.
inline constexpr std::size_t kMaxPrefixBytes = 104;

enum class Ecn : std::uint8_t { not_ect = 0, ect_1 = 1, ect_0 = 2, ce = 3 };

// `sealed_number` is what the tag knows of the packet number, its 32 low bits: AEAD's nonce is made of the
// whole number (RFC 9001 5.3), so that a packet is not opened under another one.
struct Datagram {
    std::uint16_t size_bytes = 0;
    std::uint8_t prefix_bytes = 0;
    Ecn ecn = Ecn::not_ect;
    std::uint32_t sealed_number = 0;
    std::uint8_t prefix[kMaxPrefixBytes];
};

struct DatagramView {
    const std::uint8_t* prefix;
    std::size_t prefix_bytes;
    std::size_t size_bytes;  // at least prefix_bytes
    Ecn ecn = Ecn::not_ect;
    std::uint32_t sealed_number = 0;
};

inline DatagramView view(const Datagram& datagram) {
    return {datagram.prefix, datagram.prefix_bytes, datagram.size_bytes, datagram.ecn,
            datagram.sealed_number};
}

}  // namespace quicgym::quic
