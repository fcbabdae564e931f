#include "sim/ns3/dumbbell.hpp"

#include <ns3/arp-l3-protocol.h>
#include <ns3/data-rate.h>
#include <ns3/drop-tail-queue.h>
#include <ns3/icmpv4-l4-protocol.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/mac48-address.h>
#include <ns3/net-device-queue-interface.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/simulator.h>
#include <ns3/traffic-control-layer.h>
#include <ns3/udp-l4-protocol.h>

#include <limits>

#include "sim/ns3/addresses.hpp"
#include "sim/ns3/channel.hpp"
#include "sim/ns3/loss_model.hpp"
#include "sim/ns3/queue_discipline.hpp"
#include "sim/ns3/routing.hpp"
#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

namespace {

using Device = ns3::Ptr<ns3::PointToPointNetDevice>;

const ns3::QueueSize kUnbounded(ns3::QueueSizeUnit::PACKETS, std::numeric_limits<std::uint32_t>::max());

// ns-3's UDP/IPv4 without IPv6, whose messages at start-up would share the links.
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

// PointToPointHelper would add the interface through which a queue disc stops the device, and
// Ipv4AddressHelper a queue disc; a drop-tail link has neither.
Device add_device(const ns3::Ptr<ns3::Node>& node, const ns3::Ptr<TwoDelayChannel>& channel,
                  std::uint64_t rate_bits_per_second, ns3::QueueSize queue_limit) {
    auto device = ns3::CreateObject<ns3::PointToPointNetDevice>();
    device->SetAddress(ns3::Mac48Address::Allocate());
    device->SetDataRate(ns3::DataRate(rate_bits_per_second));
    auto queue = ns3::CreateObject<ns3::DropTailQueue<ns3::Packet>>();
    queue->SetMaxSize(queue_limit);
    device->SetQueue(queue);
    node->AddDevice(device);
    device->Attach(channel);
    return device;
}

ns3::Ipv4Address add_address(const Device& device, std::uint32_t network, std::uint32_t host) {
    auto ipv4 = device->GetNode()->GetObject<ns3::Ipv4>();
    const ns3::Ipv4Address address(network + host);
    const std::uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, ns3::Ipv4InterfaceAddress(address, ns3::Ipv4Mask("/30")));
    ipv4->SetMetric(interface, 1);
    ipv4->SetUp(interface);
    return address;
}

void connect_host(const ns3::Ptr<ns3::Node>& host, const ns3::Ptr<ns3::Node>& router, std::uint64_t rate,
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
}

Device add_bottleneck_device(const ns3::Ptr<ns3::Node>& node, const ns3::Ptr<TwoDelayChannel>& channel,
                             const Link& link) {
    if (link.queue_discipline == kDropTail) {
        return add_device(node, channel, link.rate_bits_per_second, queue_size(link));
    }
    // The disc holds the queue: the device keeps one packet ready and stops the disc meanwhile.
    const Device device =
        add_device(node, channel, link.rate_bits_per_second, {ns3::QueueSizeUnit::PACKETS, 1});
    auto interface = ns3::CreateObject<ns3::NetDeviceQueueInterface>();
    interface->GetTxQueue(0)->ConnectQueueTraces(device->GetQueue());
    device->AggregateObject(interface);
    return device;
}

}  // namespace

// Sets a device's rate at the times of a schedule, one pending event at a time.
class Dumbbell::RateSchedule {
public:
    RateSchedule(Device device, std::vector<RateStep> steps)
        : device_(std::move(device)), steps_(std::move(steps)) {
        schedule_next();
    }

private:
    void schedule_next() {
        if (next_ == steps_.size()) return;
        // Context 0 comes first at its instant: a transmission that starts then has the new rate.
        ns3::Simulator::ScheduleWithContext(0, to_ns3(steps_[next_].at - now()), [this] {
            device_->SetDataRate(ns3::DataRate(steps_[next_].rate_bits_per_second));
            ++next_;
            schedule_next();
        });
    }

    Device device_;
    std::vector<RateStep> steps_;
    std::size_t next_ = 0;
};

Dumbbell::Dumbbell(const Scenario& scenario, std::uint64_t seed, BottleneckMonitor& monitor) {
    for (std::size_t flow = 0; flow < scenario.flows.size(); ++flow) senders_.push_back(create_node());
    for (std::size_t flow = 0; flow < scenario.flows.size(); ++flow) receivers_.push_back(create_node());
    sender_router_ = create_node();
    receiver_router_ = create_node();
    connect_bottleneck(scenario, seed, monitor);
    connect_access_links(scenario);
}

Dumbbell::~Dumbbell() = default;

void Dumbbell::connect_access_links(const Scenario& scenario) {
    sender_router_->GetObject<DumbbellRouting>()->set_client_networks(kSenderNetworks);
    receiver_router_->GetObject<DumbbellRouting>()->set_client_networks(kReceiverNetworks);
    for (std::size_t flow = 0; flow < scenario.flows.size(); ++flow) {
        const Flow& f = scenario.flows[flow];
        connect_host(senders_[flow], sender_router_, f.access_rate_bits_per_second,
                     f.access_delay + f.extra_delay, link_network(kSenderNetworks, flow));
        connect_host(receivers_[flow], receiver_router_, f.access_rate_bits_per_second, f.access_delay,
                     link_network(kReceiverNetworks, flow));
    }
}

void Dumbbell::connect_bottleneck(const Scenario& scenario, std::uint64_t seed, BottleneckMonitor& monitor) {
    auto channel = ns3::CreateObject<TwoDelayChannel>();
    channel->set_delays(scenario.bottleneck.delay, scenario.reverse.delay);
    forward_device_ = add_bottleneck_device(sender_router_, channel, scenario.bottleneck);
    reverse_device_ = add_bottleneck_device(receiver_router_, channel, scenario.reverse);

    const ns3::Ipv4Address forward_address = add_address(forward_device_, kBottleneckNetwork, 1);
    const ns3::Ipv4Address reverse_address = add_address(reverse_device_, kBottleneckNetwork, 2);
    sender_router_->GetObject<DumbbellRouting>()->set_default_route(forward_device_, forward_address,
                                                                    reverse_address);
    receiver_router_->GetObject<DumbbellRouting>()->set_default_route(reverse_device_, reverse_address,
                                                                      forward_address);

    const auto forward_disc = install_queue_disc(forward_device_, scenario.bottleneck, scenario);
    install_queue_disc(reverse_device_, scenario.reverse, scenario);
    monitor.watch(forward_device_->GetQueue(), forward_disc, scenario.bottleneck.queue_unit);

    if (scenario.bottleneck.loss.kind != LossKind::none) {
        reverse_device_->SetReceiveErrorModel(ns3::CreateObject<LossErrorModel>(
            scenario.bottleneck.loss, Random(seed, RandomPurpose::forward_loss, 0),
            ns3::MakeCallback(&BottleneckMonitor::on_packet_lost, &monitor)));
    }
    if (scenario.reverse.loss.kind != LossKind::none) {
        forward_device_->SetReceiveErrorModel(ns3::CreateObject<LossErrorModel>(
            scenario.reverse.loss, Random(seed, RandomPurpose::reverse_loss, 0),
            LossErrorModel::LossCallback()));
    }
    for (const auto& [device, link] :
         {std::pair{forward_device_, &scenario.bottleneck}, std::pair{reverse_device_, &scenario.reverse}}) {
        if (!link->rate_schedule.empty()) {
            rate_schedules_.push_back(std::make_unique<RateSchedule>(device, link->rate_schedule));
        }
    }
}

void Dumbbell::enable_pcap(const std::string& prefix) {
    ns3::PointToPointHelper helper;
    helper.EnablePcap(prefix + kPcapFileEnds[0], forward_device_, false, true);
    helper.EnablePcap(prefix + kPcapFileEnds[1], reverse_device_, false, true);
}

void Dumbbell::release() {
    rate_schedules_.clear();
    forward_device_ = nullptr;
    reverse_device_ = nullptr;
    sender_router_ = nullptr;
    receiver_router_ = nullptr;
    senders_.clear();
    receivers_.clear();
}

}  // namespace quicgym::ns3_host
