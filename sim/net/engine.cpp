#include "sim/net/engine.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/capabilities.hpp"

namespace quicgym::net {

namespace {

// The smallest datagram that an endpoint sends. RFC 9001 5.4.2: packet number and payload have four bytes
// together.
constexpr std::uint64_t kSmallestWireBytes = kLinkBytes + 1 + quic::kConnectionIdBytes + 4 + quic::kTagBytes;
constexpr std::uint64_t kSmallestFragmentBytes = kFragmentFramingBytes + 1;

// Not std::min_element: which time is the earliest is unpredictable, and its branch would be, too.
Time earliest(const std::vector<Time>& times) {
    Time earliest_time = kNever;
    for (const Time time : times) earliest_time = std::min(earliest_time, time);
    return earliest_time;
}

}  // namespace

// The two hosts of a flow.
struct NativeSimulation::Hosts {
    Hosts(const Flow& flow, std::size_t index, std::uint64_t seed, Time start_time)
        : start(start_time),
          sender(flow, index, seed, start_time),
          receiver(flow, start_time, quic::make_client(flow, index, seed)) {
        sender.show_frames_to(receiver.client());
    }
    Hosts(const Hosts& other)
        : start(other.start),
          sender(other.sender),
          receiver(other.receiver),
          trace(other.trace),
          deliveries(other.deliveries) {
        sender.show_frames_to(receiver.client());
    }

    Time start;
    quic::Sender sender;
    quic::Receiver receiver;
    std::vector<TraceSample> trace;
    std::vector<Delivery> deliveries;
};

// The two hosts of an entry of short flows.
struct NativeSimulation::ShortFlowHosts {
    ShortFlowHosts(const ShortFlows& short_flows, std::size_t entry, std::uint64_t seed)
        : senders(short_flows, entry, seed, transfers), receivers(short_flows, transfers) {}
    ShortFlowHosts(const ShortFlowHosts& other)
        : transfers(other.transfers),
          senders(other.senders, transfers),
          receivers(other.receivers, transfers) {}

    quic::TransferTable transfers;
    quic::ShortFlowSenders senders;
    quic::ShortFlowReceivers receivers;
};

NativeSimulation::NativeSimulation(const Scenario& scenario, std::uint64_t seed)
    : trace_interval_(scenario.trace_interval), record_deliveries_(scenario.record_deliveries) {
    check_capabilities(scenario, Engine::native);
    check_chain(scenario);
    add_hops(forward_, scenario, seed);
    add_hops(backward_, scenario, seed);
    queue_traces_.resize(hop_count());
    for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
        const Flow& flow = scenario.flows[i];
        hosts_.push_back(std::make_unique<Hosts>(flow, i, seed, flow_start(scenario, i, seed)));
        add_paths(scenario, flow);
    }
    for (std::size_t i = 0; i < scenario.short_flows.size(); ++i) {
        short_flows_.push_back(std::make_unique<ShortFlowHosts>(scenario.short_flows[i], i, seed));
        add_paths(scenario, scenario.short_flows[i].flow);
    }
    const std::size_t pairs = forward_.paths.size();
    for (std::vector<Time>* next : {&next_host_event_, &forward_.next_arrival, &backward_.next_arrival}) {
        next->resize(pairs);
    }
    for (std::size_t pair = 0; pair < pairs; ++pair) find_next_events(pair);
    if (trace_interval_ > 0) next_sample_ = trace_interval_;
}

void NativeSimulation::add_hops(Direction& direction, const Scenario& scenario, std::uint64_t seed) {
    const std::size_t hops = quicgym::hop_count(scenario);
    for (std::size_t i = 0; i < hops; ++i) {
        const std::size_t hop = direction.way == DataDirection::forward ? i : hops - 1 - i;
        direction.hops.push_back(make_hop(scenario, direction.way, hop, seed));
    }
}

void NativeSimulation::add_paths(const Scenario& scenario, const Flow& flow) {
    auto [left, right] = access_links(flow);
    const bool is_forward = flow.direction == DataDirection::forward;
    const HopRange hops = hops_of(scenario, flow);
    const std::size_t end = hop_count() - 1;
    forward_.hops[hops.first].entering.push_back(forward_.paths.size());
    backward_.hops[end - hops.last].entering.push_back(backward_.paths.size());
    forward_.paths.push_back(
        {.packets = {}, .entry = left, .exit = right, .first_hop = hops.first, .last_hop = hops.last});
    backward_.paths.push_back({.packets = {},
                               .entry = right,
                               .exit = left,
                               .first_hop = end - hops.last,
                               .last_hop = end - hops.first});
    const std::uint64_t smallest = flow.mtu_bytes > 0 ? kSmallestFragmentBytes : kSmallestWireBytes;
    const Time left_side = left.shortest_transit(smallest);
    const Time right_side = right.shortest_transit(smallest);
    const Link& last_forward = link_of_hop(scenario, DataDirection::forward, hops.last);
    const Link& last_backward = link_of_hop(scenario, DataDirection::backward, hops.first);
    shortest_entry_ = std::min({shortest_entry_, left_side, right_side});
    shortest_passage_ = std::min({shortest_passage_, shortest_delay(last_forward) + right_side,
                                  shortest_delay(last_backward) + left_side});
    if (may_overtake(scenario.bottleneck)) forward_.paths.back().packets.let_overtake(right_side);
    if (may_overtake(scenario.reverse)) backward_.paths.back().packets.let_overtake(left_side);
    if (flow.mtu_bytes > 0) {
        if (may_overtake(scenario.bottleneck) || may_overtake(scenario.reverse)) {
            throw std::invalid_argument(
                "access.mtu_bytes: fragments keep their order; take out reordering and reroutes");
        }
        if (hop_count() > 1) throw std::invalid_argument("access.mtu_bytes: not in a chain; take out chain");
        forward_.paths.back().packets.fragment_above(flow.mtu_bytes);
        backward_.paths.back().packets.fragment_above(flow.mtu_bytes);
    }
    data_goes_backward_.push_back(!is_forward);
}

NativeSimulation::~NativeSimulation() = default;

NativeSimulation::NativeSimulation(const NativeSimulation&) = default;

std::unique_ptr<Simulation> NativeSimulation::clone() const {
    return std::unique_ptr<Simulation>(new NativeSimulation(*this));
}

void NativeSimulation::find_next_events(std::size_t pair) {
    PacketRing& forward = forward_.paths[pair].packets;
    PacketRing& backward = backward_.paths[pair].packets;
    forward_.next_arrival[pair] = forward.next_at_bottleneck().arrival;
    backward_.next_arrival[pair] = backward.next_at_bottleneck().arrival;
    const auto next_event = [&](const auto& sender, const auto& receiver) {
        return std::min({sender.next_timeout(), receiver.next_timeout(), forward.next_arrival(),
                         backward.next_arrival()});
    };
    if (pair < hosts_.size()) {
        next_host_event_[pair] = next_event(hosts_[pair]->sender, hosts_[pair]->receiver);
    } else {
        const ShortFlowHosts& hosts = *short_flows_[pair - hosts_.size()];
        next_host_event_[pair] = next_event(hosts.senders, hosts.receivers);
    }
}

void NativeSimulation::run_until(Time until) {
    if (until < now_) {
        throw std::invalid_argument("run_until: " + std::to_string(until) +
                                    " ns lies before the current time, " + std::to_string(now_) + " ns");
    }
    if (failed_) throw std::runtime_error("this simulation ended with an error; make a new one");
    failed_ = true;  // until its end is reached: a controller may throw halfway through a host's step
    for (;;) {
        const Time end = std::min(until, next_sample_) + 1;
        Time event = earliest(next_host_event_);
        Time arrival = next_at_bottlenecks();
        if (std::min(event, arrival) >= end) {
            if (next_sample_ > until) break;
            now_ = next_sample_;
            take_samples();
            continue;
        }
        const auto after = [end](Time begin, Time delay) {
            return begin < end ? std::min(begin + delay, end) : end;
        };
        // Every arrival before this is known: a host sends at its next event at the earliest, or when
        // the next packet has come to it.
        const Time serve_to = after(std::min(event, after(arrival, shortest_passage_)), shortest_entry_);
        serve(forward_, serve_to);
        serve(backward_, serve_to);
        // And every packet that comes to a host before this.
        event = earliest(next_host_event_);
        arrival = next_at_bottlenecks();
        const Time run_to = after(std::min(arrival, after(event, shortest_entry_)), shortest_passage_);
        for (std::size_t pair = 0; pair < next_host_event_.size(); ++pair) {
            if (next_host_event_[pair] < run_to) run_hosts(pair, run_to);
        }
    }
    now_ = until;
    failed_ = false;
}

Time NativeSimulation::next_at_bottlenecks() const {
    Time next = kNever;
    for (const Direction* direction : {&forward_, &backward_}) {
        next = std::min(next, earliest(direction->next_arrival));
        for (const Hop& hop : direction->hops) {
            next = std::min({next, hop.handover.next_arrival(), next_start(hop)});
        }
    }
    return next;
}

// Passes every packet that leaves a link before `end` on to the next one or to its receiver's access link.
void NativeSimulation::serve(Direction& direction, Time end) {
    for (std::size_t number = 0; number < direction.hops.size(); ++number) {
        for_each_route(direction.hops[number], end,
                       [&](auto& link, Time until) { serve_hop(direction, number, link, until, end); });
    }
}

// Calls `visit` with the path, the flow, the position and the transit of every packet that reaches a hop
// before `end`, in order of arrival across flows. The packet has left its ring's way to the bottleneck.
template <class Visit>
void NativeSimulation::for_each_arrival(Direction& direction, std::size_t number, Time end, Visit visit) {
    if (direction.hops.size() > 1) return for_each_arrival_in_chain(direction, number, end, visit);
    std::vector<Path>& paths = direction.paths;
    const auto take = [&](Path& path, std::size_t flow) __attribute__((always_inline)) {
        const std::uint64_t position = path.packets.position_at_bottleneck();
        const Transit arriving = path.packets.at_bottleneck().transit;
        path.packets.pass_bottleneck();
        visit(path, flow, position, arriving);
    };
    if (paths.size() == 1) {
        Path& path = paths.front();
        while (path.packets.next_at_bottleneck().arrival < end) take(path, 0);
        direction.next_arrival.front() = path.packets.next_at_bottleneck().arrival;
        return;
    }
    order_.clear();
    for (std::size_t flow = 0; flow < paths.size(); ++flow) {
        if (direction.next_arrival[flow] >= end) continue;
        paths[flow].packets.for_each_at_bottleneck([&](const Packet& packet) {
            if (packet.transit.arrival >= end) return false;
            order_.add(packet.transit, flow);
            return true;
        });
    }
    for (const Arrival& arrival : order_.sort()) take(paths[arrival.flow], arrival.flow);
    for (std::size_t flow = 0; flow < paths.size(); ++flow) {
        if (direction.next_arrival[flow] >= end) continue;
        direction.next_arrival[flow] = paths[flow].packets.next_at_bottleneck().arrival;
    }
}

// At one hop of a chain. Of packets that arrive in the same nanosecond and were scheduled in the same, those
// from hosts come before those from the hop before.
template <class Visit>
[[gnu::noinline]] void NativeSimulation::for_each_arrival_in_chain(Direction& direction, std::size_t number,
                                                                   Time end, Visit visit) {
    Hop& hop = direction.hops[number];
    order_.clear();
    for (const std::size_t flow : hop.entering) {
        if (direction.next_arrival[flow] >= end) continue;
        direction.paths[flow].packets.for_each_at_bottleneck([&](const Packet& packet) {
            if (packet.transit.arrival >= end) return false;
            order_.add(packet.transit, flow);
            return true;
        });
    }
    // Within one nanosecond ns-3's events go by node, and routers are numbered from the senders' side. What
    // comes from a router with a higher number is scheduled behind this router's own events.
    const Time behind = direction.way == DataDirection::backward ? 1 : 0;
    const auto visit_handed_on = [&] {
        const AtHop packet = hop.handover.pop();
        visit(direction.paths[packet.flow], packet.flow, packet.position,
              Transit{packet.transit.arrival, packet.transit.scheduled + behind});
    };
    for (const Arrival& entering : order_.sort()) {
        while (hop.handover.next_arrival() <= entering.transit.arrival) {
            const Transit& next = hop.handover.next();
            if (next.arrival == entering.transit.arrival && next.scheduled >= entering.transit.scheduled)
                break;
            visit_handed_on();
        }
        Path& path = direction.paths[entering.flow];
        const std::uint64_t position = path.packets.position_at_bottleneck();
        Packet& packet = path.packets.at_bottleneck();
        packet.transit = kNoTransit;  // to its receiver, until the last hop has served it
        packet.gone = false;
        path.packets.pass_bottleneck();
        visit(path, entering.flow, position, entering.transit);
    }
    while (hop.handover.next_arrival() < end) visit_handed_on();
    for (const std::size_t flow : hop.entering) {
        if (direction.next_arrival[flow] >= end) continue;
        direction.next_arrival[flow] = direction.paths[flow].packets.next_at_bottleneck().arrival;
    }
}

void NativeSimulation::serve_hop(Direction& direction, std::size_t number, BottleneckLink& link, Time until,
                                 Time) {
    Hop& hop = direction.hops[number];
    Hop* const next_hop = number + 1 < direction.hops.size() ? &direction.hops[number + 1] : nullptr;
    const bool has_policer = hop.policer.has_value();
    for_each_arrival(
        direction, number, until,
        // Once per packet, but for_each_arrival() calls it at several places: inlined by order.
        [&](Path& path, std::size_t flow, std::uint64_t position,
            const Transit arriving) __attribute__((always_inline)) {
            Packet& packet = path.packets.at(position);
            if (has_policer && !hop.policer->admits(arriving.arrival, packet.wire_bytes)) {
                packet.gone = true;
                ++path.dropped_packets;
                return;
            }
            const auto outcome = link.offer(arriving, packet.wire_bytes, static_cast<std::uint32_t>(flow));
            packet.gone = outcome.dropped || outcome.lost;
            path.dropped_packets += packet.gone;
            if (outcome.lost) path.pending_losses.add(outcome.transit.arrival, arriving.arrival);
            if (outcome.transit.arrival == kNever) {
                packet.transit = kNoTransit;
            } else if (!outcome.dropped) {
                path.queue_delays.add(outcome.queue_delay);
                if (outcome.lost) return;
                if (next_hop != nullptr && path.last_hop != number) {
                    next_hop->handover.push({outcome.transit, position, static_cast<std::uint32_t>(flow)});
                    return;
                }
                next_host_event_[flow] =
                    std::min(next_host_event_[flow], path.send_on(packet, position, outcome.transit));
            }
        });
}

void NativeSimulation::serve_hop(Direction& direction, std::size_t number, ManagedLink& link, Time until,
                                 Time end) {
    Hop& hop = direction.hops[number];
    Hop* const next_hop = number + 1 < direction.hops.size() ? &direction.hops[number + 1] : nullptr;
    const bool has_policer = hop.policer.has_value();
    const auto depart = [&](const ManagedLink::Departure& departure) {
        const QueuedPacket& queued = departure.packet;
        Path& path = direction.paths[queued.flow];
        Packet& packet = path.packets.at(queued.position);
        path.queue_delays.add(departure.transit.scheduled - queued.arrival);
        if (departure.lost) {
            packet.gone = true;
            ++path.dropped_packets;
            path.pending_losses.add(departure.transit.arrival, departure.transit.scheduled);
            return;
        }
        if (queued.ecn == quic::Ecn::ce) path.packets.mark(queued.position);
        if (next_hop != nullptr && path.last_hop != number) {
            packet.ecn = queued.ecn;
            next_hop->handover.push({departure.transit, queued.position, queued.flow});
            return;
        }
        next_host_event_[queued.flow] =
            std::min(next_host_event_[queued.flow], path.send_on(packet, queued.position, departure.transit));
    };
    const auto drop = [&](const QueuedPacket& queued) {
        Path& path = direction.paths[queued.flow];
        path.packets.at(queued.position).gone = true;
        ++path.dropped_packets;
    };
    for_each_arrival(direction, number, until,
                     [&](Path& path, std::size_t flow, std::uint64_t position, const Transit arriving) {
                         Packet& packet = path.packets.at(position);
                         if (has_policer && !hop.policer->admits(arriving.arrival, packet.wire_bytes)) {
                             packet.gone = true;
                             ++path.dropped_packets;
                             return;
                         }
                         packet.transit = kNoTransit;
                         packet.gone = false;
                         const QueuedPacket queued{
                             arriving.arrival, position, static_cast<std::uint32_t>(flow),
                             packet.wire_bytes - static_cast<std::uint32_t>(kFramingBytes), packet.ecn};
                         link.offer(arriving, queued, depart, drop);
                     });
    link.advance(end, depart, drop);
}

namespace {

// The host of one endpoint: datagrams come out of one ring, and those that it sends go into another.
struct RingHost {
    PacketRing& inbound;
    PacketRing& outbound;
    AccessLink& entry;

    Time next_arrival() { return inbound.next_arrival(); }
    quic::DatagramView arrived() const { return inbound.next_datagram(); }
    void on_received(Time, const quic::Receipt&) { inbound.pop(); }
    quic::Datagram& outgoing() { return outbound.free_datagram(); }
    // Inlined by order: drive() is there once for each kind of endpoint.
    [[gnu::always_inline]] void send(Time now) { outbound.push(entry, now); }
};

struct ReceivingHost : RingHost {
    std::size_t flow;
    std::vector<Delivery>* deliveries;  // null: not recorded
    DelayHistogram& one_way_delays;

    void on_received(Time now, const quic::Receipt& receipt) {
        const Time sent = inbound.next_sent();
        one_way_delays.add(now - sent);
        if (deliveries != nullptr && receipt.packet_number != quic::kNoPacket)
            deliveries->push_back({flow, receipt.packet_number, now, sent});
        inbound.pop();
    }
};

}  // namespace

void NativeSimulation::run_hosts(std::size_t pair, Time end) {
    if (pair < hosts_.size()) {
        Hosts& hosts = *hosts_[pair];
        run_endpoints(pair, hosts.sender, hosts.receiver, record_deliveries_ ? &hosts.deliveries : nullptr,
                      end);
    } else {
        ShortFlowHosts& hosts = *short_flows_[pair - hosts_.size()];
        run_endpoints(pair, hosts.senders, hosts.receivers, nullptr, end);
    }
    find_next_events(pair);
}

template <class Sending, class Receiving>
void NativeSimulation::run_endpoints(std::size_t pair, Sending& sender, Receiving& receiver,
                                     std::vector<Delivery>* deliveries, Time end) {
    const bool is_backward = data_goes_backward_[pair];
    Path& data = (is_backward ? backward_ : forward_).paths[pair];
    Path& acks = (is_backward ? forward_ : backward_).paths[pair];
    if (data.packets.lets_overtake()) data.packets.take_off_wire(data.exit, end);
    if (acks.packets.lets_overtake()) acks.packets.take_off_wire(acks.exit, end);
    ReceivingHost receiving{{data.packets, acks.packets, acks.entry}, pair, deliveries, data.one_way_delays};
    quic::drive(receiver, receiving, end);
    RingHost sending{acks.packets, data.packets, data.entry};
    quic::drive(sender, sending, end);
}

void NativeSimulation::take_samples() {
    for (std::size_t hop = 0; hop < queue_traces_.size(); ++hop) queue_traces_[hop].push_back(queue(hop));
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
        Hosts& flow = *hosts_[i];
        if (now_ < flow.start) continue;
        TraceSample sample = flow.sender.sample(now_);
        sample.received_bytes = flow.receiver.received_bytes();
        sample.dropped_packets = dropped_packets(i);
        flow.trace.push_back(sample);
    }
    next_sample_ += trace_interval_;
}

FlowStatistics NativeSimulation::statistics(std::size_t flow) const {
    FlowStatistics statistics;
    hosts_.at(flow)->sender.add_statistics(now_, statistics);
    hosts_[flow]->receiver.add_statistics(now_, statistics);
    statistics.dropped_packets = dropped_packets(flow);
    const Path& path = data_direction(flow).paths[flow];
    statistics.queues = path.last_hop - path.first_hop + 1;
    add_queueing(flow, statistics);
    statistics.set_queue_delays(queue_delays(flow));
    statistics.one_way_delay_sum_seconds = path.one_way_delays.sum_seconds();
    statistics.set_one_way_delays(path.one_way_delays.buckets());
    return statistics;
}

template <class Totals>
void NativeSimulation::add_queueing(std::size_t pair, Totals& totals) const {
    const DelayHistogram& all = data_direction(pair).paths[pair].queue_delays;
    const DelayHistogram waiting = waiting_delays(pair);
    totals.queue_samples = all.count() - waiting.count();
    totals.queue_delay_sum_seconds = to_seconds(all.sum() - waiting.sum());
}

DelayBuckets NativeSimulation::queue_delays(std::size_t pair) const {
    return DelayHistogram::between(waiting_delays(pair).buckets(),
                                   data_direction(pair).paths[pair].queue_delays.buckets());
}

DelayHistogram NativeSimulation::waiting_delays(std::size_t pair) const {
    DelayHistogram waiting;
    const Direction& direction = data_direction(pair);
    const Path& path = direction.paths[pair];
    for (std::size_t hop = path.first_hop; hop <= path.last_hop; ++hop) {
        for (const Route& route : direction.hops[hop].routes) {
            const auto* link = std::get_if<BottleneckLink>(&route.link);
            if (link == nullptr) continue;
            link->for_each_waiting(now_, [&](std::uint32_t owner, Time delay) {
                if (owner == pair) waiting.add(delay);
            });
        }
    }
    return waiting;
}

FlowTotals NativeSimulation::totals(std::size_t flow) {
    FlowTotals totals;
    totals.statistics = statistics(flow);
    hosts_[flow]->sender.mark(now_, totals);
    totals.receive_rates = hosts_[flow]->receiver.rates(now_);
    totals.queue_delays = queue_delays(flow);
    totals.one_way_delays = data_direction(flow).paths[flow].one_way_delays.buckets();
    return totals;
}

FlowState NativeSimulation::state(std::size_t flow) const {
    FlowState state;
    hosts_.at(flow)->sender.add_state(now_, state);
    hosts_[flow]->receiver.add_state(state);
    state.dropped_packets = dropped_packets(flow);
    return state;
}

std::vector<Transfer> NativeSimulation::requests(std::size_t flow) const {
    const quic::Client* client = hosts_.at(flow)->receiver.client();
    return client != nullptr ? client->requests() : std::vector<Transfer>();
}

ShortFlowTotals NativeSimulation::short_flow_totals(std::size_t entry) const {
    const quic::ShortFlowReceivers& receivers = short_flows_.at(entry)->receivers;
    const std::size_t pair = hosts_.size() + entry;
    ShortFlowTotals totals{.received_packets = receivers.received_packets(),
                           .received_bytes = receivers.received_bytes(),
                           .dropped_packets = dropped_packets(pair)};
    add_queueing(pair, totals);
    return totals;
}

std::vector<Transfer> NativeSimulation::transfers(std::size_t entry) const {
    const ShortFlowHosts& hosts = *short_flows_.at(entry);
    hosts.senders.update_records();
    return hosts.transfers.all();
}

std::uint64_t NativeSimulation::dropped_packets(std::size_t pair) const {
    const Path& path = data_direction(pair).paths[pair];
    return path.dropped_packets - path.pending_losses.count(now_);
}

QueueSample NativeSimulation::queue(std::size_t hop) const {
    return waiting(forward_.hops.at(hop), now_);
}

QueueSample NativeSimulation::access_queue(std::size_t flow) const {
    static_cast<void>(hosts_.at(flow));  // entries of short flows have paths too, but are no flows
    return data_direction(flow).paths[flow].packets.waiting_at_entry(now_);
}

double NativeSimulation::queue_occupancy_seconds() const {
    return occupancy_seconds(forward_.hops.front(), now_);
}

ControllerSnapshot NativeSimulation::snapshot(std::size_t flow) const {
    return hosts_.at(flow)->sender.controller().snapshot();
}

ParameterValues NativeSimulation::parameters(std::size_t flow) const {
    return hosts_.at(flow)->sender.controller().parameters();
}

void NativeSimulation::set_parameters(std::size_t flow, const ParameterValues& values) {
    hosts_.at(flow)->sender.set_parameters(now_, values);
    find_next_events(flow);
}

const std::vector<TraceSample>& NativeSimulation::trace(std::size_t flow) const {
    return hosts_.at(flow)->trace;
}

void NativeSimulation::record_events() {
    for (const auto& hosts : hosts_) hosts->sender.record_events();
}

const std::vector<quic::SenderEvent>& NativeSimulation::events(std::size_t flow) const {
    return hosts_.at(flow)->sender.events();
}

std::vector<Delivery> NativeSimulation::deliveries() const {
    std::vector<Delivery> all;
    for (const auto& flow : hosts_) all.insert(all.end(), flow->deliveries.begin(), flow->deliveries.end());
    std::sort(all.begin(), all.end(), [](const Delivery& a, const Delivery& b) {
        return a.time != b.time ? a.time < b.time : a.flow < b.flow;
    });
    return all;
}

}  // namespace quicgym::net
