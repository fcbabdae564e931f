// The topology: sender i – router 1 – router 2 – receiver i, or more routers in a row between them, of ns-3's
// nodes and devices.
#pragma once

#include <ns3/point-to-point-net-device.h>
#include <ns3/ptr.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/ns3/bottleneck_monitor.hpp"
#include "sim/ns3/network.hpp"
#include "sim/ns3/point_to_point.hpp"
#include "sim/scenario.hpp"

namespace quicgym::ns3_host {

// What pcap files are called after the prefix, two for each hop: each holds both directions, seen from its
// router.
std::vector<std::string> pcap_file_ends(std::size_t hops);

// Nodes are numbered hosts of the senders' side first, then those of the receivers' side, each in the order
// of flows and then of entries of short flows, then the routers from the senders' side: simultaneous events
// happen in this order (see NodeOrderScheduler). Access links never drop: their queues are unbounded.
class Dumbbell final : public Network {
public:
    Dumbbell(const Scenario& scenario, std::uint64_t seed);
    ~Dumbbell() override;

    const ns3::Ptr<ns3::Node>& sender(std::size_t pair) const override { return senders_[pair]; }
    const ns3::Ptr<ns3::Node>& receiver(std::size_t pair) const override { return receivers_[pair]; }
    void enable_pcap(const std::string& prefix) override;
    std::size_t hop_count() const override { return forward_.size(); }
    void add_totals(std::size_t pair, FlowTotals& totals) const override;
    double queue_occupancy_seconds(Time now) const override;
    QueueSample sample_queue(std::size_t hop, Time now) const override;
    QueueSample sample_access_queue(std::size_t flow, Time now) const override {
        return sample_device(*access_devices_[flow], now);
    }
    void release() override;

private:
    class RateSchedule;

    // One direction of a hop, or one of the paths that it takes.
    struct End {
        ns3::Ptr<ns3::PointToPointNetDevice> device;  // which sends in this direction
        std::unique_ptr<BottleneckMonitor> monitor;
        ns3::Ptr<ns3::PointToPointNetDevice> receiving{};
    };
    using Ends = std::vector<End>;  // by path, in the order in which packets take them

    void connect_access_links(const std::vector<HostPair>& pairs);
    void connect_hop(const Scenario& scenario, std::size_t hop, std::uint64_t seed);
    void add_reroutes(Ends& ends, const Scenario& scenario, DataDirection direction, std::size_t hop,
                      std::uint64_t seed);
    void watch(End& end, const Scenario& scenario, const Link& link, std::uint64_t random_stream);

    std::vector<HopRange> hops_of_pairs_;
    std::vector<ns3::Ptr<ns3::Node>> senders_;
    std::vector<ns3::Ptr<ns3::Node>> receivers_;
    std::vector<ns3::Ptr<ns3::PointToPointNetDevice>> access_devices_;  // of the senders
    std::vector<ns3::Ptr<ns3::Node>> routers_;                          // one more than hops
    std::vector<Ends> forward_;                                         // by hop
    std::vector<Ends> backward_;
    std::size_t reroutes_ = 0;
    std::vector<std::unique_ptr<RateSchedule>> rate_schedules_;
};

}  // namespace quicgym::ns3_host
