// The packets of one flow in one direction, from the sender's access link to the receiver. The path
// keeps their order, so one ring serves every hop and a packet is never copied. A packet that waits in the
// queue of a ManagedLink has passed the bottleneck for the ring; the queue holds its position here.
#pragma once

#include <cstdint>

#include "sim/base/ring.hpp"
#include "sim/net/link.hpp"
#include "sim/quic/datagram.hpp"

namespace quicgym::net {

// What the network needs of a packet. Kept apart from the bytes, which only the endpoints touch.
struct Packet {
    // To the bottleneck first, to the receiver once the bottleneck served it; kNoTransit while it waits.
    Transit transit;
    Time sent;
    std::uint32_t wire_bytes;
    bool dropped;   // at the bottleneck
    quic::Ecn ecn;  // as sent
};

class PacketRing {
public:
    // The datagram behind the last packet, for an endpoint to write into; push() sends it.
    quic::Datagram& free_datagram() {
        packets_.make_room(head_, tail_);
        datagrams_.make_room(head_, tail_);
        return datagrams_[tail_].datagram;
    }
    void push(AccessLink& link, Time now) {
        Packet& packet = packets_[tail_];
        const quic::Datagram& datagram = datagrams_[tail_].datagram;
        packet.wire_bytes = datagram.size_bytes + static_cast<std::uint32_t>(kLinkBytes);
        packet.ecn = datagram.ecn;
        packet.transit = link.send(now, packet.wire_bytes);
        packet.sent = now;
        ++tail_;
    }

    // The next packet to reach the bottleneck; kNoTransit: there is none.
    Transit next_at_bottleneck() const { return middle_ == tail_ ? kNoTransit : packets_[middle_].transit; }
    Packet& at_bottleneck() { return packets_[middle_]; }
    std::uint64_t position_at_bottleneck() const { return middle_; }
    void pass_bottleneck() { ++middle_; }

    Packet& at(std::uint64_t position) { return packets_[position]; }
    void mark(std::uint64_t position) { datagrams_[position].datagram.ecn = quic::Ecn::ce; }

    // Calls `visit` with the packets on their way to the bottleneck, in order, until it returns false.
    template <class Visit>
    void for_each_at_bottleneck(Visit visit) const {
        for (std::uint64_t i = middle_; i != tail_ && visit(packets_[i]); ++i) {
        }
    }

    // When the next packet reaches its receiver, past those that were dropped; kNever when none has
    // passed the bottleneck.
    Time next_arrival() {
        for (; head_ != middle_; ++head_) {
            const Packet& packet = packets_[head_];
            if (!packet.dropped) return packet.transit.arrival;
        }
        return kNever;
    }
    Time next_sent() const { return packets_[head_].sent; }
    const quic::Datagram& next_datagram() const { return datagrams_[head_].datagram; }
    void pop() { ++head_; }

private:
    // A short prefix, which is what almost every packet has, stays within one cache line.
    struct alignas(64) Slot {
        quic::Datagram datagram;
    };

    Ring<Packet> packets_;
    Ring<Slot> datagrams_;
    std::uint64_t head_ = 0;    // next to reach the receiver
    std::uint64_t middle_ = 0;  // next to reach the bottleneck
    std::uint64_t tail_ = 0;
};

}  // namespace quicgym::net
