// The datagrams of a PacketRing by their positions, in one cache line each. Almost every datagram is short
// enough. A longer one, which an ACK frame with many ranges makes, is written beyond its line into the next,
// where no datagram is yet, and its prefix is copied from there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sim/base/ring.hpp"
#include "sim/quic/datagram.hpp"

namespace quicgym::net {

class DatagramRing {
public:
    // Returns a datagram that an endpoint may write into, where `position` follows the datagrams that are
    // kept. keep() is next.
    quic::Datagram& free(std::uint64_t position) { return at(position); }

    // Keeps the datagram that free() gave. Those before `oldest` are not needed any more.
    [[gnu::always_inline]] void keep(std::uint64_t position, std::uint64_t oldest) {
        if (at(position).prefix_bytes > kShortPrefixBytes) [[unlikely]]
            keep_prefix(position, oldest);
        lines_.make_room(oldest, position + 2);  // for the next one and what it may have beyond its line
    }

    // Valid until the next datagram is kept.
    [[gnu::always_inline]] quic::DatagramView view(std::uint64_t position) const {
        const quic::Datagram& datagram = at(position);
        quic::DatagramView view = quic::view(datagram);
        if (datagram.prefix_bytes > kShortPrefixBytes) [[unlikely]]
            view.prefix = prefix_of(position);
        return view;
    }

    // The whole datagram that free() gave.
    quic::Datagram written(std::uint64_t position) const { return at(position); }
    quic::Ecn& ecn(std::uint64_t position) { return at(position).ecn; }

private:
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    struct LongPrefix {
        std::uint64_t position;
        std::uint8_t bytes[quic::kMaxPrefixBytes];
    };
    static constexpr std::size_t kShortPrefixBytes = sizeof(Line) - offsetof(quic::Datagram, prefix);
    static_assert(sizeof(quic::Datagram) <= 2 * sizeof(Line));

    quic::Datagram& at(std::uint64_t position) {
        return *reinterpret_cast<quic::Datagram*>(lines_[position].bytes);
    }
    const quic::Datagram& at(std::uint64_t position) const {
        return *reinterpret_cast<const quic::Datagram*>(lines_[position].bytes);
    }

    [[gnu::cold, gnu::noinline]] void keep_prefix(std::uint64_t position, std::uint64_t oldest) {
        if (long_prefixes_.size() == long_prefixes_.capacity()) {
            long_prefixes_.erase(long_prefixes_.begin(), first_from(oldest));
        }
        LongPrefix& kept = long_prefixes_.emplace_back();
        kept.position = position;
        std::memcpy(kept.bytes, at(position).prefix, sizeof(kept.bytes));
    }
    [[gnu::cold, gnu::noinline]] const std::uint8_t* prefix_of(std::uint64_t position) const {
        return first_from(position)->bytes;
    }
    std::vector<LongPrefix>::const_iterator first_from(std::uint64_t position) const {
        return std::lower_bound(
            long_prefixes_.begin(), long_prefixes_.end(), position,
            [](const LongPrefix& prefix, std::uint64_t other) { return prefix.position < other; });
    }

    Ring<Line, 1> lines_;
    std::vector<LongPrefix> long_prefixes_;  // by rising position
};

}  // namespace quicgym::net
