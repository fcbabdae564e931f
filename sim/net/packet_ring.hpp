// The packets of one flow in one direction, from the sender's access link to the receiver. The path
// keeps their order up to the bottleneck, so one ring serves every hop and a packet is never copied. A packet
// that waits in the queue of a ManagedLink has passed the bottleneck for the ring; the queue holds its
// position here. The fragments of an IP packet are packets that follow one another; the last has the
// datagram.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/base/ring.hpp"
#include "sim/base/value_pointer.hpp"
#include "sim/net/datagram_ring.hpp"
#include "sim/net/link.hpp"
#include "sim/net/overtaking.hpp"
#include "sim/quic/datagram.hpp"

namespace quicgym::net {

// The part of a packet that the network needs. The bytes are kept elsewhere, since only endpoints touch them.
struct Packet {
    // To the bottleneck first, to the receiver once the bottleneck served it; kNoTransit while it waits, and
    // from the first hop of a chain to the last.
    Transit transit;
    Time sent;
    std::uint32_t wire_bytes;
    bool gone;            // dropped, or received after a packet that was sent later
    quic::Ecn ecn;        // as sent, in a chain as the hop before left it
    bool more_fragments;  // not the last fragment of its datagram; written where the ring fragments
};

inline constexpr std::uint32_t kUdpHeaderBytes = 8;
inline constexpr std::uint32_t kIpHeaderBytes = 20;
inline constexpr std::uint32_t kFragmentFramingBytes = kIpHeaderBytes + 2;  // and PPP
static_assert(kUdpHeaderBytes + kFragmentFramingBytes == kLinkBytes);

class PacketRing {
public:
    // The datagram behind the last packet, for an endpoint to write into; push() sends it.
    quic::Datagram& free_datagram() { return datagrams_.free(tail_); }
    [[gnu::always_inline]] void push(AccessLink& link, Time now) {
        if (order_ == Order::of_fragments) [[unlikely]]
            return push_fragments(link, now);
        const quic::Datagram& datagram = datagrams_.free(tail_);
        push_packet(link, now, datagram.size_bytes + static_cast<std::uint32_t>(kLinkBytes), datagram.ecn);
    }

    // From here on an IPv4 packet above this size leaves as fragments. Not together with let_overtake().
    void fragment_above(std::uint64_t mtu_bytes) {
        order_ = Order::of_fragments;
        mtu_bytes_ = static_cast<std::uint32_t>(mtu_bytes);
    }

    // The next packet to reach the bottleneck; kNoTransit: there is none.
    Transit next_at_bottleneck() const { return middle_ == tail_ ? kNoTransit : packets_[middle_].transit; }
    Packet& at_bottleneck() { return packets_[middle_]; }
    std::uint64_t position_at_bottleneck() const { return middle_; }
    void pass_bottleneck() { ++middle_; }

    Packet& at(std::uint64_t position) { return packets_[position]; }
    void mark(std::uint64_t position) { datagrams_.ecn(position) = quic::Ecn::ce; }

    // Calls `visit` with the packets on their way to the bottleneck, in order, until it returns false.
    template <class Visit>
    void for_each_at_bottleneck(Visit visit) const {
        for (std::uint64_t i = middle_; i != tail_ && visit(packets_[i]); ++i) {
        }
    }

    // The packets that wait before the access link after every event up to and at `now`, without the one
    // being transmitted.
    QueueSample waiting_at_entry(Time now) const {
        QueueSample waiting{now, 0, 0};
        for (std::uint64_t i = tail_; i != middle_ && packets_[i - 1].transit.scheduled > now; --i) {
            ++waiting.packets;
            waiting.bytes += packets_[i - 1].wire_bytes;
        }
        return waiting;
    }

    // When the next packet reaches its receiver, past those that were dropped; kNever when none has
    // passed the bottleneck.
    Time next_arrival() {
        if (order_ != Order::of_packets) [[unlikely]]
            return order_ == Order::of_fragments ? next_arrival_of_last() : next_arrival_of_any();
        for (; head_ != middle_; ++head_) {
            const Packet& packet = packets_[head_];
            if (!packet.gone) return packet.transit.arrival;
        }
        return kNever;
    }
    Time next_sent() const { return packets_[head_].sent; }
    quic::DatagramView next_datagram() const { return datagrams_.view(head_); }
    void pop() { ++head_; }

    // From here on packets may overtake one another after the bottleneck: put_on_wire() and take_off_wire()
    // then say when they reach the access link that follows.
    void let_overtake(Time shortest_exit) {
        order_ = Order::overtaking;
        overtaking_ = std::make_unique<Overtaking>();
        shortest_exit_ = shortest_exit;
    }
    bool lets_overtake() const { return overtaking_ != nullptr; }
    void put_on_wire(const Transit& transit, std::uint64_t position) {
        overtaking_->put_on_wire(transit, position);
    }
    // Sends what can reach the receiver before `end` over its access link, in order of arrival.
    void take_off_wire(AccessLink& exit, Time end) {
        overtaking_->deliver(end - shortest_exit_, [&](Time arrival, std::uint64_t position) {
            packets_[position].transit = exit.send(arrival, packets_[position].wire_bytes);
        });
    }

private:
    // The order of arrival decides what next_arrival() has to look at.
    enum class Order : std::uint8_t { of_packets, of_fragments, overtaking };

    [[gnu::always_inline]] void push_packet(AccessLink& link, Time now, std::uint32_t wire_bytes,
                                            quic::Ecn ecn) {
        Packet& packet = packets_[tail_];
        packet.wire_bytes = wire_bytes;
        packet.ecn = ecn;
        packet.transit = link.send(now, wire_bytes);
        packet.sent = now;
        // Now, for the next one: endpoints are asked more often than they send.
        const std::uint64_t oldest = overtaking_ ? oldest_ : head_;
        datagrams_.keep(tail_, oldest);
        packets_.make_room(oldest, ++tail_);
    }

    // Functions that few scenarios need are not inlined, so that those that every packet needs can be.

    // RFC 791 3.2: the content of each fragment but the last is a multiple of eight bytes.
    [[gnu::cold, gnu::noinline]] void push_fragments(AccessLink& link, Time now) {
        const quic::Datagram datagram = datagrams_.written(tail_);
        std::uint32_t content = datagram.size_bytes + kUdpHeaderBytes;
        const std::uint32_t room = mtu_bytes_ - kIpHeaderBytes;
        while (content > room) {
            packets_[tail_].more_fragments = true;
            packets_[tail_].gone = false;
            datagrams_.free(tail_).prefix_bytes = 0;
            datagrams_.ecn(tail_) = datagram.ecn;
            push_packet(link, now, room / 8 * 8 + kFragmentFramingBytes, datagram.ecn);
            content -= room / 8 * 8;
        }
        packets_[tail_].more_fragments = false;
        datagrams_.free(tail_) = datagram;
        push_packet(link, now, content + kFragmentFramingBytes, datagram.ecn);
    }

    // The datagram is there with its last fragment, if none is missing; marked if one is (RFC 3168 5.3).
    [[gnu::noinline]] Time next_arrival_of_last() {
        for (; head_ != middle_; ++head_) {
            const Packet& packet = packets_[head_];
            if (packet.more_fragments) {
                if (!packet.gone && packet.transit.arrival == kNever) return kNever;  // it waits
                fragment_missing_ |= packet.gone;
                fragment_marked_ |= datagrams_.ecn(head_) == quic::Ecn::ce;
                continue;
            }
            if (!packet.gone && !fragment_missing_) {
                if (packet.transit.arrival == kNever) return kNever;
                if (fragment_marked_) datagrams_.ecn(head_) = quic::Ecn::ce;
                fragment_marked_ = false;
                return packet.transit.arrival;
            }
            if (!packet.gone && packet.transit.arrival == kNever) return kNever;
            fragment_missing_ = fragment_marked_ = false;
        }
        return kNever;
    }

    // A packet on the wire may arrive later than this, if others are before it on the access link.
    [[gnu::noinline]] Time next_arrival_of_any() {
        if (overtaking_->has_delivered() && head_ == overtaking_->first_delivered() + 1) {  // popped
            packets_[overtaking_->first_delivered()].gone = true;
            overtaking_->pop_delivered();
        }
        while (oldest_ != middle_ && packets_[oldest_].gone) ++oldest_;
        if (overtaking_->has_delivered()) {
            head_ = overtaking_->first_delivered();
            return packets_[head_].transit.arrival;
        }
        const Time off_wire = overtaking_->next_on_wire();
        return off_wire == kNever ? kNever : off_wire + shortest_exit_;
    }

    Ring<Packet> packets_;
    DatagramRing datagrams_;
    std::uint64_t head_ = 0;    // next to reach the receiver
    std::uint64_t middle_ = 0;  // next to reach the bottleneck
    std::uint64_t tail_ = 0;

    Order order_ = Order::of_packets;
    std::uint32_t mtu_bytes_ = 0;
    bool fragment_missing_ = false;  // of the datagram whose last fragment is next
    bool fragment_marked_ = false;

    ValuePointer<Overtaking> overtaking_;  // null: packets reach the receiver in the order of the ring
    std::uint64_t oldest_ = 0;             // with overtaking: what is before it has left the ring
    Time shortest_exit_ = 0;
};

}  // namespace quicgym::net
