// Short flows: transfers that arrive as a Poisson process at one pair of hosts, each over a QUIC connection
// of its own.
//
// The senders of all connections are one endpoint to their host, and so are the receivers (endpoint.hpp). A
// datagram finds its connection by the connection id (RFC 9000 5.2). Connections come and go in slots, so
// that what is kept, and what an event costs, depends on how many are open at a time, not on how many have
// been.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/base/timer_queue.hpp"
#include "sim/quic/endpoint.hpp"
#include "sim/quic/receiver.hpp"
#include "sim/quic/sender.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::quic {

// The two hosts share this table of each connection's record and slot, by the connection's number.
class TransferTable {
public:
    std::size_t size() const { return transfers_.size(); }
    void add(const Transfer& transfer, std::uint32_t slot) {
        transfers_.push_back(transfer);
        slots_.push_back(slot);
    }
    Transfer& operator[](std::uint64_t number) { return transfers_[number]; }
    std::uint32_t slot(std::uint64_t number) const { return slots_[number]; }
    const std::vector<Transfer>& all() const { return transfers_; }

private:
    std::vector<Transfer> transfers_;
    std::vector<std::uint32_t> slots_;
};

class ShortFlowSenders {
public:
    // `index` is the entry's in the scenario.
    ShortFlowSenders(const ShortFlows& short_flows, std::size_t index, std::uint64_t seed,
                     TransferTable& transfers);
    // A copy over a copy of the other one's table.
    ShortFlowSenders(const ShortFlowSenders& other, TransferTable& transfers) : ShortFlowSenders(other) {
        transfers_ = &transfers;
    }

    Receipt on_datagram(Time now, const DatagramView& datagram);
    void on_timeout(Time now);
    bool poll_datagram(Time now, Datagram& out);
    Time next_timeout() const { return std::min(next_arrival_, timers_.earliest()); }

    // Writes the losses of open connections into their records.
    void update_records() const;

private:
    struct Slot {
        std::uint64_t connection = 0;
        std::optional<Sender> sender;
    };

    ShortFlowSenders(const ShortFlowSenders&) = default;
    void draw_next_arrival();
    void open(Time now);

    Flow flow_;  // of the connection that is opened next
    double arrivals_per_second_;
    SizeDistribution sizes_;
    Time arrivals_end_;
    Time next_arrival_;
    Random arrival_random_;
    Random size_random_;
    std::uint64_t first_index_;  // of the connections' own random streams
    std::uint64_t seed_;
    TransferTable* transfers_;
    std::deque<Slot> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::optional<std::uint32_t> to_poll_;
    TimerQueue timers_;  // by slot
};
static_assert(Endpoint<ShortFlowSenders>);

class ShortFlowReceivers {
public:
    ShortFlowReceivers(const ShortFlows& short_flows, TransferTable& transfers);
    ShortFlowReceivers(const ShortFlowReceivers& other, TransferTable& transfers)
        : ShortFlowReceivers(other) {
        transfers_ = &transfers;
    }

    Receipt on_datagram(Time now, const DatagramView& datagram);
    void on_timeout(Time now);
    bool poll_datagram(Time now, Datagram& out);
    Time next_timeout() const { return timers_.earliest(); }

    std::uint64_t received_packets() const { return received_packets_; }
    std::uint64_t received_bytes() const { return received_bytes_; }

private:
    // A connection stays until the next one needs its slot: should its CONNECTION_CLOSE be lost, nothing
    // else ends it.
    struct Slot {
        std::uint64_t connection = 0;
        std::optional<Receiver> receiver;
    };

    ShortFlowReceivers(const ShortFlowReceivers&) = default;

    Flow flow_;
    TransferTable* transfers_;
    std::deque<Slot> slots_;
    std::optional<std::uint32_t> to_poll_;
    TimerQueue timers_;
    std::uint64_t received_packets_ = 0;
    std::uint64_t received_bytes_ = 0;
};
static_assert(Endpoint<ShortFlowReceivers>);

}  // namespace quicgym::quic
