#include "sim/ns3/dumbbell.hpp"

#include <ns3/data-rate.h>
#include <ns3/net-device-queue-interface.h>
#include <ns3/queue.h>
#include <ns3/simulator.h>
#include <ns3/trace-helper.h>

#include <utility>

#include "sim/net/transmitter.hpp"
#include "sim/ns3/addresses.hpp"
#include "sim/ns3/bottleneck_channel.hpp"
#include "sim/ns3/pausing_device.hpp"
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

std::vector<std::string> pcap_file_ends(std::size_t hops) {
    if (hops == 1) return {"-router-1.pcap", "-router-2.pcap"};
    std::vector<std::string> ends;
    for (std::size_t hop = 1; hop <= hops; ++hop) {
        for (const std::size_t router : {hop, hop + 1}) {
            ends.push_back("-hop-" + std::to_string(hop) + "-router-" + std::to_string(router) + ".pcap");
        }
    }
    return ends;
}

Dumbbell::Dumbbell(const Scenario& scenario, std::uint64_t seed) {
    const std::vector<HostPair> pairs = host_pairs(scenario);
    senders_.resize(pairs.size());
    receivers_.resize(pairs.size());
    for (const HostPair& pair : pairs) hops_of_pairs_.push_back(hops_of(scenario, *pair.flow));
    for (const DataDirection direction : {DataDirection::forward, DataDirection::backward}) {
        for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
            const bool is_sender = pairs[pair].flow->direction == direction;
            (is_sender ? senders_ : receivers_)[pair] = create_node();
        }
    }
    const std::size_t hops = quicgym::hop_count(scenario);
    while (routers_.size() <= hops) routers_.push_back(create_node());
    for (std::size_t hop = 0; hop < hops; ++hop) connect_hop(scenario, hop, seed);
    connect_access_links(pairs);
}

Dumbbell::~Dumbbell() = default;

void Dumbbell::connect_access_links(const std::vector<HostPair>& pairs) {
    for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
        const Flow& f = *pairs[pair].flow;
        const bool is_forward = f.direction == DataDirection::forward;
        const HopRange hops = hops_of_pairs_[pair];
        const ns3::Ptr<ns3::Node>& left = routers_[hops.first];
        const ns3::Ptr<ns3::Node>& right = routers_[hops.last + 1];
        access_devices_.push_back(connect_host(senders_[pair], is_forward ? left : right,
                                               f.access_rate_bits_per_second, f.access_delay + f.extra_delay,
                                               link_network(kSenderNetworks, pair)));
        connect_host(receivers_[pair], is_forward ? right : left, f.access_rate_bits_per_second,
                     f.access_delay, link_network(kReceiverNetworks, pair));
        // The last router's default route leads back already.
        for (std::size_t router = hops.first + 1; router <= hops.last + 1 && router + 1 < routers_.size();
             ++router) {
            routers_[router]->GetObject<DumbbellRouting>()->add_back_route(
                is_forward ? sender_address(pair) : receiver_address(pair));
        }
    }
}

void Dumbbell::connect_hop(const Scenario& scenario, std::size_t hop, std::uint64_t seed) {
    End forward{nullptr, std::make_unique<BottleneckMonitor>(hops_of_pairs_.size())};
    End backward{nullptr, std::make_unique<BottleneckMonitor>(hops_of_pairs_.size())};
    auto channel = ns3::CreateObject<BottleneckChannel>();
    channel->set_wires(net::wire_of_hop(scenario, DataDirection::forward, hop, seed),
                       net::wire_of_hop(scenario, DataDirection::backward, hop, seed),
                       ns3::MakeCallback(&BottleneckMonitor::on_packet_lost, forward.monitor.get()),
                       ns3::MakeCallback(&BottleneckMonitor::on_packet_lost, backward.monitor.get()));
    const ns3::Ptr<ns3::Node>& left = routers_[hop];
    const ns3::Ptr<ns3::Node>& right = routers_[hop + 1];
    const Link& link = link_of_hop(scenario, DataDirection::forward, hop);
    const Link& reverse = link_of_hop(scenario, DataDirection::backward, hop);
    forward.device = add_bottleneck_device(left, channel, link);
    backward.device = add_bottleneck_device(right, channel, reverse);
    forward.receiving = backward.device;
    backward.receiving = forward.device;

    const std::uint32_t network = link_network(kBottleneckNetwork, hop);
    const ns3::Ipv4Address left_address = add_address(forward.device, network, 1);
    const ns3::Ipv4Address right_address = add_address(backward.device, network, 2);
    left->GetObject<DumbbellRouting>()->set_default_route(forward.device, left_address, right_address);
    if (hop + 2 == routers_.size()) {
        right->GetObject<DumbbellRouting>()->set_default_route(backward.device, right_address, left_address);
    } else {
        right->GetObject<DumbbellRouting>()->set_back_route(backward.device, right_address, left_address);
    }
    for (auto& [end, direction] :
         {std::pair(&forward, DataDirection::forward), std::pair(&backward, DataDirection::backward)}) {
        const Link& its_link = link_of_hop(scenario, direction, hop);
        watch(*end, scenario, its_link, queue_stream(direction, hop));
        if (its_link.policer) {
            end->device->GetNode()->GetObject<DumbbellRouting>()->add_policer(
                end->device, *its_link.policer,
                ns3::MakeCallback(&BottleneckMonitor::on_packet_policed, end->monitor.get()));
        }
        std::vector<Ends>& all = direction == DataDirection::forward ? forward_ : backward_;
        all.emplace_back().push_back(std::move(*end));
        add_reroutes(all.back(), scenario, direction, hop, seed);
    }
}

// Each reroute has a separate channel between the same routers, over which one of the two devices sends.
void Dumbbell::add_reroutes(Ends& ends, const Scenario& scenario, DataDirection direction, std::size_t hop,
                            std::uint64_t seed) {
    const Link& link = link_of_hop(scenario, direction, hop);
    const ns3::Ptr<ns3::Node> from = ends.front().device->GetNode();
    const ns3::Ptr<ns3::Node> to = ends.front().receiving->GetNode();
    for (std::size_t i = 1; i <= link.reroutes.size(); ++i) {
        const Link path = path_of(link, i);
        End end{nullptr, std::make_unique<BottleneckMonitor>(hops_of_pairs_.size())};
        auto channel = ns3::CreateObject<BottleneckChannel>();
        channel->set_wires(net::wire_of_hop(scenario, direction, hop, seed, i),
                           net::wire_of_hop(scenario, direction, hop, seed, i),
                           ns3::MakeCallback(&BottleneckMonitor::on_packet_lost, end.monitor.get()), {});
        end.device = add_bottleneck_device(from, channel, path);
        end.receiving = add_device(to, channel, path.rate_bits_per_second, queue_size(path));
        const std::uint32_t network = link_network(kBottleneckNetwork, kMaxHops + reroutes_++);
        const ns3::Ipv4Address source = add_address(end.device, network, 1);
        const ns3::Ipv4Address gateway = add_address(end.receiving, network, 2);
        watch(end, scenario, path, queue_stream(direction, hop, i));
        // Context 0 comes first at its instant: what arrives then takes the new path.
        ns3::Simulator::ScheduleWithContext(0, to_ns3(link.reroutes[i - 1].at), [=, device = end.device] {
            from->GetObject<DumbbellRouting>()->change_default_route(device, source, gateway);
        });
        ends.push_back(std::move(end));
    }
}

// Sets up the parts of a path other than its device.
void Dumbbell::watch(End& end, const Scenario& scenario, const Link& link, std::uint64_t random_stream) {
    const auto disc = install_queue_disc(end.device, link, scenario, random_stream);
    end.monitor->watch(end.device->GetQueue(), disc, link.queue_unit);
    if (!link.rate_schedule.empty() && !net::Transmitter::pauses(link)) {
        rate_schedules_.push_back(std::make_unique<RateSchedule>(end.device, link.rate_schedule));
    }
}

void Dumbbell::add_totals(std::size_t pair, FlowTotals& totals) const {
    totals.statistics.queues = hops_of_pairs_[pair].size();
    FlowCounters::Counters sum;
    for (const std::vector<Ends>* direction : {&forward_, &backward_}) {
        for (const Ends& ends : *direction) {
            for (const End& end : ends) sum += end.monitor->counters(pair);
        }
    }
    sum.add_to(totals);
}

double Dumbbell::queue_occupancy_seconds(Time now) const {
    double sum = 0.0;
    for (const End& end : forward_.front()) sum += end.monitor->occupancy_seconds(now);
    return sum;
}

QueueSample Dumbbell::sample_queue(std::size_t hop, Time now) const {
    QueueSample sum{now, 0, 0};
    for (const End& end : forward_[hop]) {
        const QueueSample sample = end.monitor->sample(now);
        sum.packets += sample.packets;
        sum.bytes += sample.bytes;
    }
    return sum;
}

void Dumbbell::enable_pcap(const std::string& prefix) {
    const std::vector<std::string> ends = pcap_file_ends(forward_.size());
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const Ends& sending = (i % 2 == 0 ? forward_ : backward_)[i / 2];
        const Ends& receiving = (i % 2 == 0 ? backward_ : forward_)[i / 2];
        ns3::PcapHelper helper;
        const auto file = helper.CreateFile(prefix + ends[i], std::ios::out, ns3::PcapHelper::DLT_PPP);
        for (const End& end : sending) {
            helper.HookDefaultSink<ns3::PointToPointNetDevice>(end.device, "PromiscSniffer", file);
            // It takes its packets out of the queue itself, and ns-3's device sees only what comes in.
            if (ns3::DynamicCast<PausingDevice>(end.device)) {
                helper.HookDefaultSink<ns3::Queue<ns3::Packet>>(end.device->GetQueue(), "Dequeue", file);
            }
        }
        // The first path's receiving device is the other direction's sending one.
        for (std::size_t path = 1; path < receiving.size(); ++path) {
            helper.HookDefaultSink<ns3::PointToPointNetDevice>(receiving[path].receiving, "PromiscSniffer",
                                                               file);
        }
    }
}

void Dumbbell::release() {
    for (std::vector<Ends>* direction : {&forward_, &backward_}) {
        for (Ends& ends : *direction) {
            for (End& end : ends) {
                end.monitor->release();
                end.device = nullptr;
                end.receiving = nullptr;
            }
        }
    }
    rate_schedules_.clear();
    routers_.clear();
    senders_.clear();
    access_devices_.clear();
    receivers_.clear();
}

}  // namespace quicgym::ns3_host
