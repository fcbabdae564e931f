#include "sim/ns3/point_to_point.hpp"

#include <ns3/arp-l3-protocol.h>
#include <ns3/data-rate.h>
#include <ns3/drop-tail-queue.h>
#include <ns3/icmpv4-l4-protocol.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/mac48-address.h>
#include <ns3/traffic-control-layer.h>
#include <ns3/udp-l4-protocol.h>

#include <limits>

#include "sim/ns3/addresses.hpp"
#include "sim/ns3/pausing_device.hpp"
#include "sim/ns3/routing.hpp"

namespace quicgym::ns3_host {

namespace {

using Device = ns3::Ptr<ns3::PointToPointNetDevice>;

const ns3::QueueSize kUnbounded(ns3::QueueSizeUnit::PACKETS, std::numeric_limits<std::uint32_t>::max());

void connect(const Device& device, const ns3::Ptr<ns3::Node>& node, const ns3::Ptr<TwoDelayChannel>& channel,
             ns3::QueueSize queue_limit) {
    device->SetAddress(ns3::Mac48Address::Allocate());
    auto queue = ns3::CreateObject<ns3::DropTailQueue<ns3::Packet>>();
    queue->SetMaxSize(queue_limit);
    device->SetQueue(queue);
    node->AddDevice(device);
    device->Attach(channel);
}

}  // namespace

ns3::Ptr<ns3::Node> create_node() {
    auto node = ns3::CreateObject<ns3::Node>();
    auto arp = ns3::CreateObject<ns3::ArpL3Protocol>();
    auto traffic_control = ns3::CreateObject<ns3::TrafficControlLayer>();
    auto ipv4 = ns3::CreateObject<ns3::Ipv4L3Protocol>();
    auto routing = ns3::CreateObject<DumbbellRouting>();
    node->AggregateObject(arp);
    node->AggregateObject(ipv4);
    node->AggregateObject(ns3::CreateObject<ns3::Icmpv4L4Protocol>());
    node->AggregateObject(traffic_control);
    node->AggregateObject(ns3::CreateObject<ns3::UdpL4Protocol>());
    node->AggregateObject(routing);
    ipv4->SetRoutingProtocol(routing);
    arp->SetTrafficControl(traffic_control);
    return node;
}

Device add_device(const ns3::Ptr<ns3::Node>& node, const ns3::Ptr<TwoDelayChannel>& channel,
                  std::uint64_t rate_bits_per_second, ns3::QueueSize queue_limit) {
    auto device = ns3::CreateObject<ns3::PointToPointNetDevice>();
    device->SetDataRate(ns3::DataRate(rate_bits_per_second));
    connect(device, node, channel, queue_limit);
    return device;
}

Device add_pausing_device(const ns3::Ptr<ns3::Node>& node, const ns3::Ptr<TwoDelayChannel>& channel,
                          const Link& link, ns3::QueueSize queue_limit) {
    auto device = ns3::CreateObject<PausingDevice>();
    device->set_transmitter(link);
    connect(device, node, channel, queue_limit);
    return device;
}

ns3::Ipv4Address add_address(const ns3::Ptr<ns3::NetDevice>& device, std::uint32_t network,
                             std::uint32_t host) {
    auto ipv4 = device->GetNode()->GetObject<ns3::Ipv4>();
    const ns3::Ipv4Address address(network + host);
    const std::uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, ns3::Ipv4InterfaceAddress(address, ns3::Ipv4Mask("/30")));
    ipv4->SetMetric(interface, 1);
    ipv4->SetUp(interface);
    return address;
}

Device connect_host(const ns3::Ptr<ns3::Node>& host, const ns3::Ptr<ns3::Node>& router, std::uint64_t rate,
                    Time delay, std::uint32_t network) {
    auto channel = ns3::CreateObject<TwoDelayChannel>();
    channel->set_delays(delay, delay);
    const Device host_device = add_device(host, channel, rate, kUnbounded);
    const Device router_device = add_device(router, channel, rate, kUnbounded);
    const ns3::Ipv4Address host_address = add_address(host_device, network, kEndHost);
    const ns3::Ipv4Address router_address = add_address(router_device, network, kRouterHost);
    auto routing = host->GetObject<DumbbellRouting>();
    routing->set_own_address(host_address);
    routing->set_default_route(host_device, host_address, router_address);
    router->GetObject<DumbbellRouting>()->add_client_route(router_device, router_address, host_address);
    return host_device;
}

QueueSample sample_device(const ns3::PointToPointNetDevice& device, Time now) {
    const auto queue = device.GetQueue();
    return {now, queue->GetNPackets(), queue->GetNBytes()};
}

}  // namespace quicgym::ns3_host
