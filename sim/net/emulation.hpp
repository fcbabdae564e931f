// The network of a scenario for packets that come from outside, as those of real programs: hosts hand them in
// with the time at which they were sent, and get the time at which they arrive. Links, queues and random
// numbers are those of the native engine, and so is every arrival, to the nanosecond.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/fields.hpp"
#include "sim/net/hop.hpp"
#include "sim/net/overtaking.hpp"
#include "sim/net/recording.hpp"
#include "sim/quic/datagram.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::net {

// The fate of a packet.
QUICGYM_ENUM(Fate, delivered, dropped, lost, held)
// dropped: by a queue or a policer; lost: on a wire; held: by a link that stays silent for good.

class EmulatedNetwork {
public:
    // Each of the scenario's flows is a path, whatever the flow itself is. Throws std::invalid_argument for a
    // wireless LAN and for fragments.
    EmulatedNetwork(const Scenario& scenario, std::uint64_t seed);

    struct Sent {
        std::uint64_t id;  // of the caller's
        Time time;
        std::uint32_t path;
        DataDirection way;  // forward: from the senders' side, over the bottleneck
        std::uint32_t wire_bytes;
        std::uint32_t queue_flow;  // for queues that tell flows apart
        quic::Ecn ecn;
    };

    struct Outcome {
        std::uint64_t id;
        Time time;  // delivered: at the host; lost: at the wire's end; otherwise at the hop that kept it
        std::uint32_t path;
        DataDirection way;
        Fate fate;
        quic::Ecn ecn;
    };

    // Totals of one direction up to a time. Bytes are those on the wire.
    struct Totals {
        std::uint64_t sent_packets = 0;
        std::uint64_t sent_bytes = 0;
        std::uint64_t delivered_packets = 0;
        std::uint64_t delivered_bytes = 0;
        std::uint64_t dropped_packets = 0;
        std::uint64_t lost_packets = 0;
        std::uint64_t held_packets = 0;
        Time queue_delay_sum = 0;  // of the delivered packets, over all hops

        QUICGYM_FIELDS(Totals, sent_packets, sent_bytes, delivered_packets, delivered_bytes, dropped_packets,
                       lost_packets, held_packets, queue_delay_sum)
    };

    std::size_t path_count() const { return paths_[0].size(); }
    // A packet that is sent now reaches the first queue no sooner than after this, and its receiver no sooner
    // than after shortest_transit().
    Time lookahead() const { return lookahead_; }
    Time shortest_transit() const { return shortest_transit_; }

    // The packets of one host must come in the order in which they were sent. One that should have reached a
    // queue before the time up to which the network has advanced reaches it then; returns by how much.
    Time send(const Sent& sent);

    // Everything at the queues and on the wires before `end` happens. Returns what became of packets by then:
    // arrivals at hosts may lie after `end`. Valid up to the next call.
    const std::vector<Outcome>& advance(Time end);

    // When something happens next; kNever: there is nothing on the way.
    Time next_event() const;
    // Packets whose fate is not known yet.
    std::uint64_t in_transit() const { return records_.size() - free_.size(); }
    // Counts what has happened up to `now`: a packet that still waits or is on a wire is in `sent` alone,
    // although a queue that is first in, first out knows its fate at once. `now` may lie before the time up
    // to which the network has advanced, by at most lookahead().
    Totals totals(DataDirection way, Time now) const;
    // The queue before the first hop of a direction: the bottleneck, or the first hop of the way back.
    QueueSample queue(DataDirection way, Time now) const;

    // From now on, before the first packet, what passes is recorded. Throws std::invalid_argument for an
    // interval below 1 ns, and for more than 1 GiB of rows.
    void record(Time interval, Time duration);
    const Recording& recording() const { return recording_; }

private:
    struct Path {
        AccessLink entry;
        AccessLink exit;
        std::size_t first_hop;  // in the order in which packets pass them
        std::size_t last_hop;
        std::optional<Overtaking> overtaking;
    };

    // On its way to a hop.
    struct Arriving {
        Transit transit;
        std::uint32_t rank;   // of two that arrive at once: hosts' by path, then those from the hop before
        std::uint64_t order;  // in which they came to be on their way
        std::uint64_t position;
    };
    struct Later {  // the earliest is the heap's largest
        bool operator()(const Arriving& a, const Arriving& b) const;
    };
    static constexpr std::uint32_t kHandedOn = 0xffff'ffff;

    struct Stage {
        Hop hop;
        std::vector<Arriving> arriving{};  // a heap
    };

    struct Record {
        std::uint64_t id;
        Time sent;
        Time queue_delay;
        std::uint32_t path;
        DataDirection way;
        std::uint32_t wire_bytes;
        std::uint32_t queue_flow;
        quic::Ecn ecn;
    };

    // A packet's fate, until the time comes at which it counts.
    struct Settled {
        Time time;
        Time queue_delay;
        std::uint32_t wire_bytes;
        DataDirection way;
        Fate fate;
    };
    struct LaterSettled {  // the earliest is the heap's largest
        bool operator()(const Settled& a, const Settled& b) const { return a.time > b.time; }
    };

    // The position of a packet grows with the order of sending; its low bits are those of its record.
    static constexpr int kRecordBits = 24;
    static std::size_t record_of(std::uint64_t position) {
        return position & ((std::uint64_t{1} << kRecordBits) - 1);
    }
    static std::size_t index(DataDirection way) { return way == DataDirection::forward ? 0 : 1; }

    void advance_all(Time end);
    void record_queues(Time now);
    void leave_queue(Record& record, Time time, Time delay);
    void push(Stage& stage, const Transit& transit, std::uint32_t rank, std::uint64_t position);
    Arriving pop(Stage& stage);
    void serve(DataDirection way, std::size_t number, BottleneckLink& link, Time until, Time end);
    void serve(DataDirection way, std::size_t number, ManagedLink& link, Time until, Time end);
    template <class Offer>
    void for_each_arrival(DataDirection way, std::size_t number, Time end, Offer offer);
    void pass_on(std::size_t number, std::uint64_t position, const Transit& transit);
    void deliver(Path& path, std::uint64_t position, Time off_wire);
    void finish(std::uint64_t position, Time time, Fate fate);
    static void count(Totals& totals, const Settled& settled);

    std::array<std::vector<Stage>, 2> stages_;  // by way
    std::array<std::vector<Path>, 2> paths_;
    std::array<Totals, 2> totals_{};  // without what is in settled_
    std::vector<Settled> settled_;    // a heap
    Recording recording_;
    std::vector<Record> records_;
    std::vector<std::uint32_t> free_;
    std::vector<Outcome> outcomes_;
    std::uint64_t sequence_ = 0;
    std::uint64_t order_ = 0;
    Time advanced_to_ = 0;
    Time lookahead_ = kNever;
    Time shortest_transit_ = kNever;
};

}  // namespace quicgym::net
