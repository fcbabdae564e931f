// The topology: sender i – router 1 – router 2 – receiver i, of ns-3's nodes and devices.
#pragma once

#include <ns3/point-to-point-net-device.h>
#include <ns3/ptr.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/ns3/bottleneck_monitor.hpp"
#include "sim/ns3/network.hpp"
#include "sim/scenario.hpp"

namespace quicgym::ns3_host {

// What pcap files are called after the prefix: each holds both directions, seen from its router.
inline constexpr const char* kPcapFileEnds[] = {"-router-1.pcap", "-router-2.pcap"};

// Nodes are numbered hosts of the first router first, then those of the second, each in the order of flows,
// then the routers: simultaneous events happen in this order (see NodeOrderScheduler). Access links never
// drop: their queues are unbounded.
class Dumbbell final : public Network {
public:
    Dumbbell(const Scenario& scenario, std::uint64_t seed);
    ~Dumbbell() override;

    const ns3::Ptr<ns3::Node>& sender(std::size_t flow) const override { return senders_[flow]; }
    const ns3::Ptr<ns3::Node>& receiver(std::size_t flow) const override { return receivers_[flow]; }
    void enable_pcap(const std::string& prefix) override;
    void add_statistics(std::size_t flow, FlowStatistics& statistics) const override {
        monitor_.add_statistics(flow, statistics);
        reverse_monitor_.add_statistics(flow, statistics);
    }
    double queue_occupancy_seconds(Time now) const override { return monitor_.occupancy_seconds(now); }
    QueueSample sample_queue(Time now) const override { return monitor_.sample(now); }
    void release() override;

private:
    class RateSchedule;

    void connect_access_links(const Scenario& scenario);
    void connect_bottleneck(const Scenario& scenario, std::uint64_t seed);

    BottleneckMonitor monitor_;
    BottleneckMonitor reverse_monitor_;  // of flows whose data goes backward
    std::vector<ns3::Ptr<ns3::Node>> senders_;
    std::vector<ns3::Ptr<ns3::Node>> receivers_;
    ns3::Ptr<ns3::Node> sender_router_;
    ns3::Ptr<ns3::Node> receiver_router_;
    ns3::Ptr<ns3::PointToPointNetDevice> forward_device_;
    ns3::Ptr<ns3::PointToPointNetDevice> reverse_device_;
    std::vector<std::unique_ptr<RateSchedule>> rate_schedules_;
};

}  // namespace quicgym::ns3_host
