// The native engine: a dumbbell, or a chain of bottlenecks, of any number of flows, as fast as one core can
// follow.
//
// There is no global event queue. The bottleneck and the hosts take turns, as conservative parallel
// simulation has it (Chandy and Misra 1979). The bottleneck serves its arrivals in order of time, up to
// the first that a host could still send; then each host runs on its own, up to the first packet that
// could still come through. So time advances by half of the shortest flow's empty RTT in each turn, and
// order across hosts does not matter within one. In a chain all bottlenecks are served up to the same time,
// one after the other in the direction of the packets, so that each knows what the one before hands on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/value_pointer.hpp"
#include "sim/net/arrival_order.hpp"
#include "sim/net/hop.hpp"
#include "sim/net/link.hpp"
#include "sim/net/managed_link.hpp"
#include "sim/net/packet_ring.hpp"
#include "sim/quic/receiver.hpp"
#include "sim/quic/sender.hpp"
#include "sim/quic/short_flows.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::net {

class NativeSimulation final : public Simulation {
public:
    // Throws std::invalid_argument for what only ns-3 can do: a wireless LAN, TCP, pcap.
    NativeSimulation(const Scenario& scenario, std::uint64_t seed);
    ~NativeSimulation() override;
    std::unique_ptr<Simulation> clone() const override;

    Time now() const override { return now_; }
    void run_until(Time until) override;
    std::size_t flow_count() const override { return hosts_.size(); }
    FlowStatistics statistics(std::size_t flow) const override;
    FlowTotals totals(std::size_t flow) override;
    FlowState state(std::size_t flow) const override;
    std::size_t hop_count() const override { return forward_.hops.size(); }
    QueueSample queue(std::size_t hop) const override;
    QueueSample access_queue(std::size_t flow) const override;
    ControllerSnapshot snapshot(std::size_t flow) const override;
    ParameterValues parameters(std::size_t flow) const override;
    void set_parameters(std::size_t flow, const ParameterValues& values) override;
    const std::vector<TraceSample>& trace(std::size_t flow) const override;
    const std::vector<QueueSample>& queue_trace(std::size_t hop) const override {
        return queue_traces_.at(hop);
    }
    double queue_occupancy_seconds() const override;
    std::vector<Delivery> deliveries() const override;
    std::vector<Transfer> requests(std::size_t flow) const override;
    std::size_t short_flow_count() const override { return short_flows_.size(); }
    ShortFlowTotals short_flow_totals(std::size_t entry) const override;
    std::vector<Transfer> transfers(std::size_t entry) const override;

    // Keeps what the flows' senders do from now on.
    void record_events();
    const std::vector<quic::SenderEvent>& events(std::size_t flow) const;

private:
    struct Hosts;
    struct ShortFlowHosts;

    NativeSimulation(const NativeSimulation&);

    // One pair of hosts' way in one direction. The pairs are those of the flows, then those of the entries of
    // short flows; what is kept of a pair has its number.
    struct Path {
        PacketRing packets;
        AccessLink entry;       // into the network
        AccessLink exit;        // from the last hop to the receiving host
        std::size_t first_hop;  // of its direction, as the last one
        std::size_t last_hop;
        std::uint64_t dropped_packets = 0;  // those whose loss is pending included
        PendingLosses pending_losses{};
        DelayHistogram queue_delays{};
        DelayHistogram one_way_delays{};  // of the packets that their receiver got

        // Sends a packet, which comes off the last hop's wire then, over the receiver's access link.
        // Returns a time before which nothing new reaches the receiver.
        [[gnu::always_inline]] Time send_on(Packet& packet, std::uint64_t position, const Transit& off_wire) {
            if (packets.lets_overtake()) {
                packets.put_on_wire(off_wire, position);
                return packets.next_arrival();
            }
            packet.transit = exit.send(off_wire.arrival, packet.wire_bytes);
            return packet.transit.arrival;
        }
    };

    // One direction of the network.
    struct Direction {
        DataDirection way;
        std::vector<Hop> hops{};  // in the order in which packets pass them
        std::vector<Path> paths{};
        std::vector<Time> next_arrival{};  // per path: of its next packet at its first hop
    };

    void add_hops(Direction& direction, const Scenario& scenario, std::uint64_t seed);
    void serve(Direction& direction, Time end);
    // Offers packets that arrive before `until` to the link, which sends those that it starts before `end`.
    void serve_hop(Direction& direction, std::size_t number, BottleneckLink& link, Time until, Time end);
    void serve_hop(Direction& direction, std::size_t number, ManagedLink& link, Time until, Time end);
    template <class Visit>
    void for_each_arrival(Direction& direction, std::size_t number, Time end, Visit visit);
    template <class Visit>
    void for_each_arrival_in_chain(Direction& direction, std::size_t number, Time end, Visit visit);
    // No packet comes through a bottleneck to a host sooner than this and the shortest passage.
    Time next_at_bottlenecks() const;
    void add_paths(const Scenario& scenario, const Flow& flow);
    void run_hosts(std::size_t pair, Time end);
    template <class Sending, class Receiving>
    void run_endpoints(std::size_t pair, Sending& sender, Receiving& receiver,
                       std::vector<Delivery>* deliveries, Time end);
    void find_next_events(std::size_t pair);
    std::uint64_t dropped_packets(std::size_t pair) const;
    // Puts down how long the pair's data packets have waited in the queues that they left.
    template <class Totals>
    void add_queueing(std::size_t pair, Totals& totals) const;
    // The delays of the pair's packets that wait in a drop-tail queue, where their departure is already
    // known.
    DelayHistogram waiting_delays(std::size_t pair) const;
    // The delays of the pair's packets that have left the queue.
    DelayBuckets queue_delays(std::size_t pair) const;
    void take_samples();
    const Direction& data_direction(std::size_t pair) const {
        return data_goes_backward_[pair] ? backward_ : forward_;
    }

    std::vector<ValuePointer<Hosts>> hosts_;
    std::vector<ValuePointer<ShortFlowHosts>> short_flows_;
    std::vector<Time> next_host_event_;  // per pair of hosts
    Direction forward_{.way = DataDirection::forward};
    Direction backward_{.way = DataDirection::backward};
    std::vector<bool> data_goes_backward_;  // per pair of hosts
    ArrivalOrder order_;
    Time shortest_entry_ = kNever;    // from a host to a bottleneck
    Time shortest_passage_ = kNever;  // through a bottleneck to a host
    Time now_ = 0;
    Time trace_interval_;
    Time next_sample_ = kNever;
    bool record_deliveries_;
    bool failed_ = false;                                 // run_until was left by an exception
    std::vector<std::vector<QueueSample>> queue_traces_;  // of the forward hops
};

}  // namespace quicgym::net
