// Queueing delay, drops and occupancy of one direction of a bottleneck, by flow.
#pragma once

#include <ns3/ipv4-header.h>
#include <ns3/packet.h>
#include <ns3/ptr.h>
#include <ns3/queue-disc.h>
#include <ns3/queue.h>

#include <cstdint>
#include <deque>

#include "sim/base/time_integral.hpp"
#include "sim/ns3/flow_counters.hpp"
#include "sim/simulation.hpp"

namespace quicgym::ns3_host {

// A packet waits from its arrival at the queue (the queue disc, where there is one, else the
// device's own) until the device takes it out to transmit it.
class BottleneckMonitor {
public:
    explicit BottleneckMonitor(std::size_t flow_count) : counters_(flow_count) {}
    BottleneckMonitor(const BottleneckMonitor&) = delete;
    BottleneckMonitor& operator=(const BottleneckMonitor&) = delete;

    // The second is null where there is no disc; `unit` is that of the queue's limit. Before the simulation
    // starts.
    void watch(ns3::Ptr<ns3::Queue<ns3::Packet>> device_queue, ns3::Ptr<ns3::QueueDisc> disc, QueueUnit unit);
    // The network dropped this packet, which starts with an IPv4 header (after a PPP header or not).
    void on_packet_lost(ns3::Ptr<const ns3::Packet> packet);
    void on_packet_policed(const ns3::Ipv4Header& header, ns3::Ptr<const ns3::Packet> payload);

    const FlowCounters::Counters& counters(std::size_t flow) const { return counters_.of(flow); }
    QueueSample sample(Time now) const;
    // The integral over time of what waits, in the unit of the limit.
    double occupancy_seconds(Time now) const { return occupancy_.until(now); }
    void release();

private:
    struct Waiting {
        const ns3::QueueItem* item;  // identity only; null without a queue disc
        Time arrival;
        std::uint32_t flow;  // kNoFlow: not a flow's
    };
    static constexpr std::uint32_t kNoFlow = 0xffff'ffff;

    void on_occupancy(std::uint32_t before, std::uint32_t after);
    void on_device_enqueue(ns3::Ptr<const ns3::Packet> packet);
    void on_device_dequeue(ns3::Ptr<const ns3::Packet> packet);
    void on_device_drop(ns3::Ptr<const ns3::Packet> packet);
    void on_disc_dequeue(ns3::Ptr<const ns3::QueueDiscItem> item);
    void on_disc_drop(ns3::Ptr<const ns3::QueueDiscItem> item);
    void on_disc_drop_after_dequeue(ns3::Ptr<const ns3::QueueDiscItem> item, const char* reason);

    ns3::Ptr<ns3::Queue<ns3::Packet>> device_queue_;
    ns3::Ptr<ns3::QueueDisc> disc_;
    TimeIntegral occupancy_;
    // Without a disc: the device's queue. With one: what left the disc and waits in the device.
    std::deque<Waiting> waiting_;
    FlowCounters counters_;
};

}  // namespace quicgym::ns3_host
