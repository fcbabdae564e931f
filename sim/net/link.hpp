// Links of the native engine. A first-in first-out link needs no events: when a packet arrives, its
// departure follows from the one before it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/ring.hpp"
#include "sim/base/time.hpp"
#include "sim/net/loss.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::net {

// The time that `wire_bytes` take at the rate, rounded as ns-3's DataRate does it.
Time transmission_time(std::uint64_t wire_bytes, std::uint64_t rate_bits_per_second);

// Remembers transmission times: a flow sends packets of few sizes.
class TransmissionTimes {
public:
    void set_rate(std::uint64_t rate_bits_per_second) {
        rate_bits_per_second_ = rate_bits_per_second;
        for (auto& entry : entries_) entry.wire_bytes = 0;
    }

    Time operator()(std::uint64_t wire_bytes) {
        Entry& entry = entries_[wire_bytes % kEntries];
        if (entry.wire_bytes != wire_bytes) {
            entry = {wire_bytes, transmission_time(wire_bytes, rate_bits_per_second_)};
        }
        return entry.time;
    }

private:
    static constexpr std::size_t kEntries = 16;
    struct Entry {
        std::uint64_t wire_bytes = 0;
        Time time = 0;
    };
    std::uint64_t rate_bits_per_second_ = 0;
    std::array<Entry, kEntries> entries_;
};

// Where and when a packet is on its way. `scheduled` is when its last hop began to transmit: of two
// packets that arrive in the same nanosecond, the one that was scheduled first is first.
struct Transit {
    Time arrival;
    Time scheduled;
};

inline constexpr Transit kNoTransit{kNever, kNever};

// A link between a host and its router, with a queue that never overflows.
class AccessLink {
public:
    AccessLink(std::uint64_t rate_bits_per_second, Time delay) : delay_(delay) {
        times_.set_rate(rate_bits_per_second);
    }

    Transit send(Time now, std::uint64_t wire_bytes) {
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

// One direction of the bottleneck: a drop-tail queue before a transmitter of fixed, scheduled or
// trace-driven rate.
class BottleneckLink {
public:
    explicit BottleneckLink(const Link& link, Random loss_random);

    struct Outcome {
        bool dropped;  // by the queue
        bool lost;     // on the wire
        Time queue_delay;
        Transit transit;
    };

    // Packets must be offered in the order in which they arrive.
    Outcome offer(const Transit& arriving, std::uint64_t wire_bytes, std::uint32_t flow);

    // What waits after every event up to and at `now`; the packet being transmitted not counted.
    QueueSample waiting_at(Time now) const;

    // The integral over time, up to `now`, of what waits, in the unit of the queue's limit.
    double occupancy_seconds(Time now) const;

    // Calls `visit(flow, queue delay)` with every packet that still waits after all events at `now`.
    template <class Visit>
    void for_each_waiting(Time now, Visit visit) const {
        for (std::uint64_t i = head_; i != tail_; ++i) {
            const Waiting& packet = waiting_[i];
            if (packet.start > now) visit(packet.flow, packet.start - packet.arrival);
        }
    }

private:
    // A packet in the queue. When its transmission starts because the one before it ended, ns-3 decided
    // so at `trigger`, the start of that one; packets that found the link idle never wait.
    struct Waiting {
        Time start;
        Time trigger;
        Time arrival;
        std::uint32_t wire_bytes;
        std::uint32_t flow;
    };

    Time finish_transmission(Time start, std::uint64_t wire_bytes);
    Time finish_by_trace(Time arrival, std::uint64_t wire_bytes);
    void leave_before(const Transit& arriving);
    std::uint64_t amount(std::uint64_t wire_bytes) const { return limit_in_packets_ ? 1 : wire_bytes; }
    void push_waiting(const Waiting& waiting);

    TransmissionTimes times_;
    Time delay_;
    std::uint64_t queue_limit_;
    bool limit_in_packets_;
    LossProcess loss_;

    std::vector<RateStep> rate_schedule_;
    std::size_t next_rate_step_ = 0;

    // mahimahi: one opportunity carries up to 1500 bytes; the trace repeats with its last time as period.
    std::vector<std::uint32_t> opportunities_ms_;
    std::uint64_t opportunity_ = 0;
    std::uint64_t opportunity_bytes_left_ = 0;

    Time free_at_ = 0;
    Time last_start_ = -1;

    Ring<Waiting> waiting_;
    std::uint64_t head_ = 0;
    std::uint64_t tail_ = 0;
    std::uint64_t waiting_bytes_ = 0;
    unsigned __int128 occupancy_sum_ = 0;  // amount times ns, of every packet's whole wait
};

}  // namespace quicgym::net
