// Packets in the order of their arrival.
#pragma once

#include <cstdint>

#include "sim/base/ring.hpp"
#include "sim/net/queues/discipline.hpp"

namespace quicgym::net {

class PacketFifo {
public:
    bool empty() const { return head_ == tail_; }
    std::uint64_t packets() const { return tail_ - head_; }
    std::uint64_t bytes() const { return bytes_; }
    const QueuedPacket& front() const { return packets_[head_]; }

    void push(const QueuedPacket& packet) {
        packets_.make_room(head_, tail_);
        packets_[tail_++] = packet;
        bytes_ += packet.bytes;
    }

    QueuedPacket pop_back() {
        const QueuedPacket packet = packets_[--tail_];
        bytes_ -= packet.bytes;
        return packet;
    }

    QueuedPacket pop() {
        const QueuedPacket packet = packets_[head_++];
        bytes_ -= packet.bytes;
        return packet;
    }

private:
    Ring<QueuedPacket> packets_;
    std::uint64_t head_ = 0;
    std::uint64_t tail_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace quicgym::net
