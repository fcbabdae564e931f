// The interface through which the host uses a topology, whatever its links.
#pragma once

#include <ns3/node.h>
#include <ns3/ptr.h>

#include <cstddef>
#include <string>

#include "sim/simulation.hpp"

namespace quicgym::ns3_host {

// Callbacks of ns-3 reach into it until Simulator::Destroy; what it counted stays readable afterwards.
class Network {
public:
    Network() = default;
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;
    virtual ~Network() = default;

    // Each flow has a pair of hosts with its number; those of the entries of short flows follow.
    virtual const ns3::Ptr<ns3::Node>& sender(std::size_t pair) const = 0;
    virtual const ns3::Ptr<ns3::Node>& receiver(std::size_t pair) const = 0;
    virtual void enable_pcap(const std::string& prefix) = 0;
    virtual void add_totals(std::size_t pair, FlowTotals& totals) const = 0;
    // The integral over time of what waits before the bottleneck, in the unit of the queue's limit.
    virtual double queue_occupancy_seconds(Time now) const = 0;
    // Not after release().
    virtual QueueSample sample_queue(std::size_t hop, Time now) const = 0;
    virtual QueueSample sample_access_queue(std::size_t flow, Time now) const = 0;
    virtual std::size_t hop_count() const { return 1; }
    // Lets go of every ns-3 object; before Simulator::Destroy.
    virtual void release() = 0;
};

}  // namespace quicgym::ns3_host
