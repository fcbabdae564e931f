// The two hosts of an entry of short flows in ns-3: the endpoints of the native engine, over UDP sockets.
#pragma once

#include <ns3/node.h>
#include <ns3/ptr.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ns3/flow.hpp"
#include "sim/ns3/udp_host.hpp"
#include "sim/quic/short_flows.hpp"

namespace quicgym::ns3_host {

class ShortFlowHosts {
public:
    // `pair` is the number of the two hosts in the network.
    ShortFlowHosts(const Scenario& scenario, std::size_t entry, std::size_t pair, std::uint64_t seed,
                   const ns3::Ptr<ns3::Node>& sender_node, const ns3::Ptr<ns3::Node>& receiver_node,
                   Failure& failure);

    // Without what the network dropped.
    ShortFlowTotals totals() const;
    std::vector<Transfer> transfers() const;
    // Lets go of every ns-3 object; before Simulator::Destroy.
    void release();

private:
    quic::TransferTable transfers_;
    quic::ShortFlowSenders senders_;
    quic::ShortFlowReceivers receivers_;
    UdpHost<quic::ShortFlowSenders> sender_host_;
    UdpHost<quic::ShortFlowReceivers> receiver_host_;
};

}  // namespace quicgym::ns3_host
