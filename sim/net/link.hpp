// Links of the native engine. A first-in first-out link needs no events: when a packet arrives, its
// departure follows from the one before it.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "sim/base/ring.hpp"
#include "sim/base/time.hpp"
#include "sim/net/transmitter.hpp"
#include "sim/net/wire.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::net {

// Where and when a packet is on its way. `scheduled` is when its last hop began to transmit: of two
// packets that arrive in the same nanosecond, the one that was scheduled first is first.
struct Transit {
    Time arrival;
    Time scheduled;

    friend auto operator<=>(const Transit&, const Transit&) = default;
};

inline constexpr Transit kNoTransit{kNever, kNever};

// A link between a host and its router, with a queue that never overflows.
class AccessLink {
public:
    AccessLink(std::uint64_t rate_bits_per_second, Time delay) : delay_(delay) {
        times_.set_rate(rate_bits_per_second);
    }

    // Twice per packet, at more places than compilers inline.
    [[gnu::always_inline]] Transit send(Time now, std::uint64_t wire_bytes) {
        const Time start = std::max(now, free_at_);
        free_at_ = start + times_(wire_bytes);
        return {free_at_ + delay_, start};
    }

    // No packet of at least `wire_bytes` arrives sooner than this after it was sent.
    Time shortest_transit(std::uint64_t wire_bytes) { return delay_ + times_(wire_bytes); }

private:
    TransmissionTimes times_;
    Time delay_;
    Time free_at_ = 0;
};

// One direction of the bottleneck: a drop-tail queue before a transmitter.
class BottleneckLink {
public:
    BottleneckLink(const Link& link, Wire wire);

    struct Outcome {
        bool dropped;  // by the queue
        bool lost;     // on the wire
        Time queue_delay;
        Transit transit;  // kNoTransit: the link stays silent, the packet waits for good
    };

    // Packets must be offered in the order in which they arrive.
    Outcome offer(const Transit& arriving, std::uint64_t wire_bytes, std::uint32_t flow);

    // The packets that wait after every event up to and at `now`, without the one being transmitted.
    QueueSample waiting(Time now) const;

    // The integral over time, up to `now`, of what waits, in the unit of the queue's limit.
    double occupancy_seconds(Time now) const;

    // Calls `visit(flow, queue delay)` with every packet that still waits after all events at `now` and
    // whose transmission will start.
    template <class Visit>
    void for_each_waiting(Time now, Visit visit) const {
        for (std::uint64_t i = head_; i != tail_; ++i) {
            const Waiting& packet = waiting_[i];
            if (packet.start > now && packet.start != kNever)
                visit(packet.flow, packet.start - packet.arrival);
        }
    }

private:
    // A packet in the queue. ns-3 schedules its transmission at `trigger`: when it follows the one before
    // it at once, at the start of that one; when the link pauses first, at the beginning of its wait for
    // that.
    struct Waiting {
        Time start;
        Time trigger;
        Time arrival;
        std::uint32_t wire_bytes;
        std::uint32_t flow;
    };

    void leave_before(const Transit& arriving);
    std::uint64_t amount(std::uint64_t wire_bytes) const { return limit_in_packets_ ? 1 : wire_bytes; }
    void push_waiting(const Waiting& waiting);

    Transmitter transmitter_;
    Wire wire_;
    std::uint64_t queue_limit_;
    bool limit_in_packets_;

    Time free_at_ = 0;
    Time last_start_ = -1;

    Ring<Waiting> waiting_;
    std::uint64_t head_ = 0;
    std::uint64_t tail_ = 0;
    std::uint64_t waiting_bytes_ = 0;
    unsigned __int128 occupancy_sum_ = 0;  // amount times ns, of every packet's whole wait
};

}  // namespace quicgym::net
