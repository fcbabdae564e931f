// RFC 9000 sections 16 and 17: variable-length integers, packet numbers, bounded reading and writing.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sim/quic/datagram.hpp"

namespace quicgym::quic {

static_assert(std::endian::native == std::endian::little, "the byte order of the wire code assumes this");

inline constexpr std::size_t kConnectionIdBytes = 8;
inline constexpr std::size_t kTagBytes = 16;  // AEAD expansion, RFC 9001 5.3
inline constexpr std::uint64_t kMaxVarint = (1ULL << 62) - 1;

constexpr std::size_t varint_bytes(std::uint64_t value) {
    if (value < (1ULL << 6)) return 1;
    if (value < (1ULL << 14)) return 2;
    if (value < (1ULL << 30)) return 4;
    return 8;
}

// RFC 9000 A.2: enough bytes for twice the distance to the largest acknowledged packet number.
constexpr std::size_t packet_number_bytes(std::uint64_t unacknowledged) {
    if (unacknowledged < (1ULL << 7)) return 1;
    if (unacknowledged < (1ULL << 15)) return 2;
    if (unacknowledged < (1ULL << 23)) return 3;
    return 4;
}

// RFC 9000 A.3. `expected` is the largest packet number received so far plus one.
constexpr std::uint64_t decode_packet_number(std::uint64_t expected, std::uint64_t truncated,
                                             std::size_t bytes) {
    const std::uint64_t window = 1ULL << (8 * bytes);
    const std::uint64_t half = window / 2;
    const std::uint64_t candidate = (expected & ~(window - 1)) | truncated;
    if (candidate + half <= expected && candidate < (1ULL << 62) - window) return candidate + window;
    if (candidate > expected + half && candidate >= window) return candidate - window;
    return candidate;
}

// Writes into a datagram's prefix. Callers size their frames first: room() says what is left.
class Writer {
public:
    explicit Writer(Datagram& datagram) : prefix_(datagram.prefix) {}

    std::size_t position() const { return position_; }
    // Bytes that may follow; every number is stored as eight bytes, which must fit behind the last one.
    std::size_t room() const { return kMaxPrefixBytes - kStoreBytes - position_; }

    void byte(std::uint8_t value) { prefix_[position_++] = value; }

    void big_endian(std::uint64_t value, std::size_t count) {
        // One store of eight bytes, of which the first `count` stay: the next write covers the rest.
        const std::uint64_t swapped = __builtin_bswap64(value << (64 - 8 * count));
        std::memcpy(prefix_ + position_, &swapped, kStoreBytes);
        position_ += count;
    }

    void varint(std::uint64_t value) {
        const std::size_t count = varint_bytes(value);
        const auto length_bits = static_cast<std::uint64_t>(std::countr_zero(count));
        big_endian(value | (length_bits << (8 * count - 2)), count);
    }

private:
    static constexpr std::size_t kStoreBytes = 8;

    std::uint8_t* prefix_;
    std::size_t position_ = 0;
};

// Reads a datagram: the stored prefix, then implied zeros, up to `end`. Every read is checked.
class Reader {
public:
    Reader(const DatagramView& datagram, std::size_t end)
        : prefix_(datagram.prefix), prefix_bytes_(std::min(datagram.prefix_bytes, end)), end_(end) {}

    std::size_t remaining() const { return end_ - position_; }

    [[nodiscard]] bool byte(std::uint8_t& value) {
        if (position_ >= end_) return false;
        value = position_ < prefix_bytes_ ? prefix_[position_] : std::uint8_t{0};
        ++position_;
        return true;
    }

    [[nodiscard]] bool big_endian(std::uint64_t& value, std::size_t count) {
        if (remaining() < count) return false;
        value = 0;
        for (std::size_t i = 0; i < count; ++i, ++position_) {
            value = value << 8 | (position_ < prefix_bytes_ ? prefix_[position_] : 0U);
        }
        return true;
    }

    [[nodiscard]] bool varint(std::uint64_t& value) {
        if (position_ >= prefix_bytes_) {  // an implied zero is a one-byte integer
            value = 0;
            return skip(1);
        }
        const std::uint8_t first = prefix_[position_];
        const std::size_t count = std::size_t{1} << (first >> 6);
        if (count == 1) {
            value = first;
            ++position_;
            return true;
        }
        if (position_ + count > prefix_bytes_) return varint_across_prefix(value, count);
        switch (count) {
            case 2: {
                std::uint16_t raw;
                std::memcpy(&raw, prefix_ + position_, sizeof raw);
                value = __builtin_bswap16(raw) & 0x3fffU;
                break;
            }
            case 4: {
                std::uint32_t raw;
                std::memcpy(&raw, prefix_ + position_, sizeof raw);
                value = __builtin_bswap32(raw) & 0x3fffffffU;
                break;
            }
            default: {
                std::uint64_t raw;
                std::memcpy(&raw, prefix_ + position_, sizeof raw);
                value = __builtin_bswap64(raw) & kMaxVarint;
            }
        }
        position_ += count;
        return true;
    }

    [[nodiscard]] bool skip(std::uint64_t count) {
        if (count > remaining()) return false;
        position_ += count;
        return true;
    }

    // Past every zero byte from here on; implied zeros cost nothing.
    void skip_zeros() {
        while (position_ < prefix_bytes_ && prefix_[position_] == 0) ++position_;
        if (position_ >= prefix_bytes_) position_ = end_;
    }

private:
    bool varint_across_prefix(std::uint64_t& value, std::size_t count) {
        if (!big_endian(value, count)) return false;
        value &= (1ULL << (8 * count - 2)) - 1;
        return true;
    }

    const std::uint8_t* prefix_;
    std::size_t prefix_bytes_;
    std::size_t end_;
    std::size_t position_ = 0;
};

}  // namespace quicgym::quic
