// Queueing delay, drops and occupancy of an access point, by flow.
#pragma once

#include <ns3/packet.h>
#include <ns3/ptr.h>
#include <ns3/queue.h>
#include <ns3/wifi-mac-queue.h>
#include <ns3/wifi-mac.h>
#include <ns3/wifi-mpdu.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/base/time_integral.hpp"
#include "sim/ns3/flow_counters.hpp"
#include "sim/ns3/packet_view.hpp"
#include "sim/simulation.hpp"

namespace quicgym::ns3_host {

// ns-3 keeps a frame in the device's queue until its station has acknowledged it: a packet waits from its
// arrival until then, retransmissions included, and the occupancy counts what is being sent.
class AccessPointMonitor {
public:
    explicit AccessPointMonitor(std::size_t flow_count)
        : counters_(flow_count), offered_(flow_count), enqueued_(flow_count) {}
    AccessPointMonitor(const AccessPointMonitor&) = delete;
    AccessPointMonitor& operator=(const AccessPointMonitor&) = delete;

    // The second is the queue of the wired link towards the access point. Before the simulation starts.
    void watch(const ns3::Ptr<ns3::WifiMac>& mac, const ns3::Ptr<ns3::Queue<ns3::Packet>>& wired_queue);

    void add_totals(std::size_t flow, FlowTotals& totals) const;
    QueueSample sample(Time now) const;
    // The integral over time of the packets in the queue.
    double occupancy_seconds(Time now) const { return occupancy_.until(now); }
    void release();

private:
    struct Waiting {
        Time arrival;
        std::uint32_t flow;
    };

    void on_occupancy(std::uint32_t before, std::uint32_t after);
    std::optional<PacketView> view(const ns3::Packet& packet) const;
    void on_offered(ns3::Ptr<const ns3::Packet> packet);
    void on_enqueue(ns3::Ptr<const ns3::WifiMpdu> frame);
    void on_dequeue(ns3::Ptr<const ns3::WifiMpdu> frame);
    void on_frame_dropped(ns3::WifiMacDropReason reason, ns3::Ptr<const ns3::WifiMpdu> frame);
    void on_wired_drop(ns3::Ptr<const ns3::Packet> packet);

    ns3::Ptr<ns3::WifiMacQueue> queue_;
    std::unordered_map<const ns3::WifiMpdu*, Waiting> waiting_;  // frames with a flow's data
    TimeIntegral occupancy_;
    FlowCounters counters_;
    // Packets with data, by flow. What is offered and not enqueued was refused: the queue was full, which
    // ns-3 traces nowhere, or the station not associated.
    std::vector<std::uint64_t> offered_;
    std::vector<std::uint64_t> enqueued_;
};

}  // namespace quicgym::ns3_host
