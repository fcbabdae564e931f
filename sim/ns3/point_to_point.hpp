// Nodes, and wired links between them, as every topology here has them.
#pragma once

#include <ns3/ipv4-address.h>
#include <ns3/node.h>
#include <ns3/point-to-point-net-device.h>
#include <ns3/ptr.h>
#include <ns3/queue-size.h>

#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/ns3/channel.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::ns3_host {

// ns-3's UDP/IPv4 without IPv6, whose messages at start-up would share the links.
ns3::Ptr<ns3::Node> create_node();

// PointToPointHelper would add the interface through which a queue disc stops the device, and
// Ipv4AddressHelper a queue disc; a drop-tail link has neither.
ns3::Ptr<ns3::PointToPointNetDevice> add_device(const ns3::Ptr<ns3::Node>& node,
                                                const ns3::Ptr<TwoDelayChannel>& channel,
                                                std::uint64_t rate_bits_per_second,
                                                ns3::QueueSize queue_limit);

// The same with a transmitter that may pause, as the link describes it.
ns3::Ptr<ns3::PointToPointNetDevice> add_pausing_device(const ns3::Ptr<ns3::Node>& node,
                                                        const ns3::Ptr<TwoDelayChannel>& channel,
                                                        const Link& link, ns3::QueueSize queue_limit);

// Makes the device an IPv4 interface with this address in a /30 network.
ns3::Ipv4Address add_address(const ns3::Ptr<ns3::NetDevice>& device, std::uint32_t network,
                             std::uint32_t host);

// Connects a host to its router by a link that never drops, with the routes of both ends. Returns the host's
// device. The router's clients are connected in the order of their networks.
ns3::Ptr<ns3::PointToPointNetDevice> connect_host(const ns3::Ptr<ns3::Node>& host,
                                                  const ns3::Ptr<ns3::Node>& router,
                                                  std::uint64_t rate_bits_per_second, Time delay,
                                                  std::uint32_t network);

// Packets and bytes that wait in a device's queue now; a device of connect_host() has no other queue.
QueueSample sample_device(const ns3::PointToPointNetDevice& device, Time now);

}  // namespace quicgym::ns3_host
