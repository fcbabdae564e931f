#include "sim/ns3/dumbbell.hpp"

#include <ns3/data-rate.h>
#include <ns3/net-device-queue-interface.h>
#include <ns3/queue.h>
#include <ns3/simulator.h>
#include <ns3/trace-helper.h>

#include "sim/net/transmitter.hpp"
#include "sim/ns3/addresses.hpp"
#include "sim/ns3/bottleneck_channel.hpp"
#include "sim/ns3/pausing_device.hpp"
#include "sim/ns3/point_to_point.hpp"
#include "sim/ns3/queue_discipline.hpp"
#include "sim/ns3/routing.hpp"
#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

namespace {

using Device = ns3::Ptr<ns3::PointToPointNetDevice>;

Device add_bottleneck_device(const ns3::Ptr<ns3::Node>& node, const ns3::Ptr<TwoDelayChannel>& channel,
                             const Link& link) {
    const bool has_disc = link.queue_discipline != kDropTail;
    // A disc holds the queue: the device keeps one packet ready and stops the disc meanwhile.
    const ns3::QueueSize limit = has_disc ? ns3::QueueSize(ns3::QueueSizeUnit::PACKETS, 1) : queue_size(link);
    const Device device = net::Transmitter::pauses(link)
                              ? add_pausing_device(node, channel, link, limit)
                              : add_device(node, channel, link.rate_bits_per_second, limit);
    if (!has_disc) return device;
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

Dumbbell::Dumbbell(const Scenario& scenario, std::uint64_t seed)
    : monitor_(scenario.flows.size()), reverse_monitor_(scenario.flows.size()) {
    senders_.resize(scenario.flows.size());
    receivers_.resize(scenario.flows.size());
    for (const DataDirection direction : {DataDirection::forward, DataDirection::backward}) {
        for (std::size_t flow = 0; flow < scenario.flows.size(); ++flow) {
            const bool is_sender = scenario.flows[flow].direction == direction;
            (is_sender ? senders_ : receivers_)[flow] = create_node();
        }
    }
    sender_router_ = create_node();
    receiver_router_ = create_node();
    connect_bottleneck(scenario, seed);
    connect_access_links(scenario);
}

Dumbbell::~Dumbbell() = default;

void Dumbbell::connect_access_links(const Scenario& scenario) {
    for (std::size_t flow = 0; flow < scenario.flows.size(); ++flow) {
        const Flow& f = scenario.flows[flow];
        const bool is_forward = f.direction == DataDirection::forward;
        connect_host(senders_[flow], is_forward ? sender_router_ : receiver_router_,
                     f.access_rate_bits_per_second, f.access_delay + f.extra_delay,
                     link_network(kSenderNetworks, flow));
        connect_host(receivers_[flow], is_forward ? receiver_router_ : sender_router_,
                     f.access_rate_bits_per_second, f.access_delay, link_network(kReceiverNetworks, flow));
    }
}

void Dumbbell::connect_bottleneck(const Scenario& scenario, std::uint64_t seed) {
    auto channel = ns3::CreateObject<BottleneckChannel>();
    channel->set_wires(net::forward_wire(scenario, seed), net::reverse_wire(scenario, seed),
                       ns3::MakeCallback(&BottleneckMonitor::on_packet_lost, &monitor_),
                       ns3::MakeCallback(&BottleneckMonitor::on_packet_lost, &reverse_monitor_));
    forward_device_ = add_bottleneck_device(sender_router_, channel, scenario.bottleneck);
    reverse_device_ = add_bottleneck_device(receiver_router_, channel, scenario.reverse);

    const ns3::Ipv4Address forward_address = add_address(forward_device_, kBottleneckNetwork, 1);
    const ns3::Ipv4Address reverse_address = add_address(reverse_device_, kBottleneckNetwork, 2);
    sender_router_->GetObject<DumbbellRouting>()->set_default_route(forward_device_, forward_address,
                                                                    reverse_address);
    receiver_router_->GetObject<DumbbellRouting>()->set_default_route(reverse_device_, reverse_address,
                                                                      forward_address);

    const auto forward_disc =
        install_queue_disc(forward_device_, scenario.bottleneck, scenario, kForwardQueueStream);
    const auto reverse_disc =
        install_queue_disc(reverse_device_, scenario.reverse, scenario, kReverseQueueStream);
    monitor_.watch(forward_device_->GetQueue(), forward_disc, scenario.bottleneck.queue_unit);
    reverse_monitor_.watch(reverse_device_->GetQueue(), reverse_disc, scenario.reverse.queue_unit);

    if (scenario.bottleneck.policer) {
        sender_router_->GetObject<DumbbellRouting>()->set_policer(
            *scenario.bottleneck.policer,
            ns3::MakeCallback(&BottleneckMonitor::on_packet_policed, &monitor_));
    }
    if (scenario.reverse.policer) {
        receiver_router_->GetObject<DumbbellRouting>()->set_policer(
            *scenario.reverse.policer,
            ns3::MakeCallback(&BottleneckMonitor::on_packet_policed, &reverse_monitor_));
    }
    for (const auto& [device, link] :
         {std::pair{forward_device_, &scenario.bottleneck}, std::pair{reverse_device_, &scenario.reverse}}) {
        if (!link->rate_schedule.empty() && !net::Transmitter::pauses(*link)) {
            rate_schedules_.push_back(std::make_unique<RateSchedule>(device, link->rate_schedule));
        }
    }
}

void Dumbbell::enable_pcap(const std::string& prefix) {
    int end = 0;
    for (const Device& device : {forward_device_, reverse_device_}) {
        ns3::PcapHelper helper;
        const auto file =
            helper.CreateFile(prefix + kPcapFileEnds[end++], std::ios::out, ns3::PcapHelper::DLT_PPP);
        helper.HookDefaultSink<ns3::PointToPointNetDevice>(device, "PromiscSniffer", file);
        // It takes its packets out of the queue itself, and ns-3's device sees only what comes in.
        if (ns3::DynamicCast<PausingDevice>(device)) {
            helper.HookDefaultSink<ns3::Queue<ns3::Packet>>(device->GetQueue(), "Dequeue", file);
        }
    }
}

void Dumbbell::release() {
    monitor_.release();
    reverse_monitor_.release();
    rate_schedules_.clear();
    forward_device_ = nullptr;
    reverse_device_ = nullptr;
    sender_router_ = nullptr;
    receiver_router_ = nullptr;
    senders_.clear();
    receivers_.clear();
}

}  // namespace quicgym::ns3_host
