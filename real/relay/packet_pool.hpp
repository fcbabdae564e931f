// Room for the packets that a relay holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace quicgym::relay {

inline constexpr std::size_t kMostPacketBytes = 2048;

struct HeldPacket {
    std::uint32_t bytes;
    std::uint8_t content[kMostPacketBytes];
};

// The answer of a pool that already holds kMostHeldBytes.
inline constexpr std::uint32_t kNoRoom = 0xffff'ffff;
inline constexpr std::size_t kMostHeldBytes = std::size_t{64} << 20;

// Grows by a block of packets when none is free, never by a single one.
class PacketPool {
public:
    PacketPool() { grow(); }

    std::uint32_t take() {
        if (free_.empty() && blocks_.size() < kMostBlocks) grow();
        if (free_.empty()) return kNoRoom;
        const std::uint32_t number = free_.back();
        free_.pop_back();
        return number;
    }
    void give_back(std::uint32_t number) { free_.push_back(number); }
    HeldPacket& operator[](std::uint32_t number) {
        return blocks_[number / kBlockPackets][number % kBlockPackets];
    }

private:
    static constexpr std::uint32_t kBlockPackets = 512;
    static constexpr std::size_t kMostBlocks = kMostHeldBytes / (kBlockPackets * sizeof(HeldPacket));

    void grow() {
        const auto first = static_cast<std::uint32_t>(blocks_.size()) * kBlockPackets;
        blocks_.push_back(std::make_unique<HeldPacket[]>(kBlockPackets));
        free_.reserve(first + kBlockPackets);
        for (std::uint32_t i = kBlockPackets; i > 0; --i) free_.push_back(first + i - 1);
    }

    std::vector<std::unique_ptr<HeldPacket[]>> blocks_;
    std::vector<std::uint32_t> free_;
};

}  // namespace quicgym::relay
