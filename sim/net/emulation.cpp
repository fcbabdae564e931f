#include "sim/net/emulation.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <variant>

namespace quicgym::net {

bool EmulatedNetwork::Later::operator()(const Arriving& a, const Arriving& b) const {
    if (a.transit != b.transit) return a.transit > b.transit;
    if (a.rank != b.rank) return a.rank > b.rank;
    return a.order > b.order;
}

EmulatedNetwork::EmulatedNetwork(const Scenario& scenario, std::uint64_t seed) {
    if (scenario.wifi) throw std::invalid_argument("wifi: a wireless LAN cannot be emulated");
    check_chain(scenario);
    const std::size_t hops = hop_count(scenario);
    for (std::size_t i = 0; i < hops; ++i) {
        stages_[0].push_back({make_hop(scenario, DataDirection::forward, i, seed)});
        stages_[1].push_back({make_hop(scenario, DataDirection::backward, hops - 1 - i, seed)});
    }
    for (const Flow& flow : scenario.flows) {
        if (flow.mtu_bytes > 0)
            throw std::invalid_argument("access.mtu_bytes: an emulated network fragments nothing");
        const auto [left, right] = access_links(flow);
        const HopRange range = hops_of(scenario, flow);
        Path forward{left, right, range.first, range.last, std::nullopt};
        Path backward{right, left, hops - 1 - range.last, hops - 1 - range.first, std::nullopt};
        if (may_overtake(scenario.bottleneck)) forward.overtaking.emplace();
        if (may_overtake(scenario.reverse)) backward.overtaking.emplace();
        for (std::size_t way = 0; way < 2; ++way) {
            Path& path = way == 0 ? forward : backward;
            const auto direction = way == 0 ? DataDirection::forward : DataDirection::backward;
            const Time entry = path.entry.shortest_transit(0);
            Time transit = entry + path.exit.shortest_transit(0);
            for (std::size_t hop = range.first; hop <= range.last; ++hop)
                transit += shortest_delay(link_of_hop(scenario, direction, hop));
            lookahead_ = std::min(lookahead_, entry);
            shortest_transit_ = std::min(shortest_transit_, transit);
            paths_[way].push_back(std::move(path));
        }
    }
}

void EmulatedNetwork::push(Stage& stage, const Transit& transit, std::uint32_t rank, std::uint64_t position) {
    stage.arriving.push_back({transit, rank, order_++, position});
    std::push_heap(stage.arriving.begin(), stage.arriving.end(), Later{});
}

EmulatedNetwork::Arriving EmulatedNetwork::pop(Stage& stage) {
    const Arriving first = stage.arriving.front();
    std::pop_heap(stage.arriving.begin(), stage.arriving.end(), Later{});
    stage.arriving.pop_back();
    return first;
}

Time EmulatedNetwork::send(const Sent& sent) {
    if (free_.empty()) {
        if (records_.size() >> kRecordBits != 0) throw std::length_error("too many packets on their way");
        free_.push_back(static_cast<std::uint32_t>(records_.size()));
        records_.emplace_back();
    }
    const std::uint32_t record = free_.back();
    free_.pop_back();
    records_[record] = {sent.id,         sent.time,       0,       sent.path, sent.way,
                        sent.wire_bytes, sent.queue_flow, sent.ecn};
    const std::uint64_t position = sequence_++ << kRecordBits | record;

    Totals& totals = totals_[index(sent.way)];
    ++totals.sent_packets;
    totals.sent_bytes += sent.wire_bytes;
    if (sent.way == DataDirection::forward) {
        recording_.add(sent.path, sent.time, [&](PassedPackets& row) {
            ++row.sent_packets;
            row.sent_bytes += sent.wire_bytes - kLinkBytes;
        });
    }

    Path& path = paths_[index(sent.way)].at(sent.path);
    Transit transit = path.entry.send(sent.time, sent.wire_bytes);
    const Time behind = std::max<Time>(0, advanced_to_ - transit.arrival);
    transit.arrival += behind;
    push(stages_[index(sent.way)][path.first_hop], transit, sent.path, position);
    return behind;
}

const std::vector<EmulatedNetwork::Outcome>& EmulatedNetwork::advance(Time end) {
    outcomes_.clear();
    for (Time row = recording_.next_row(); row < end; row = recording_.next_row()) {
        advance_all(row);
        record_queues(row);
    }
    advance_all(end);
    while (!settled_.empty() && settled_.front().time <= end - lookahead_) {
        count(totals_[index(settled_.front().way)], settled_.front());
        std::pop_heap(settled_.begin(), settled_.end(), LaterSettled{});
        settled_.pop_back();
    }
    return outcomes_;
}

EmulatedNetwork::Totals EmulatedNetwork::totals(DataDirection way, Time now) const {
    Totals totals = totals_[index(way)];
    for (const Settled& settled : settled_) {
        if (settled.way == way && settled.time <= now) count(totals, settled);
    }
    return totals;
}

void EmulatedNetwork::count(Totals& totals, const Settled& settled) {
    switch (settled.fate) {
        case Fate::delivered:
            ++totals.delivered_packets;
            totals.delivered_bytes += settled.wire_bytes;
            totals.queue_delay_sum += settled.queue_delay;
            break;
        case Fate::dropped:
            ++totals.dropped_packets;
            break;
        case Fate::lost:
            ++totals.lost_packets;
            break;
        case Fate::held:
            ++totals.held_packets;
            break;
    }
}

void EmulatedNetwork::record(Time interval, Time duration) {
    if (interval < 1 || duration < 0) {
        throw std::invalid_argument("interval = " + std::to_string(interval) + ", duration = " +
                                    std::to_string(duration) + ": use 1 ns or more and 0 ns or more");
    }
    constexpr std::size_t kMostBytes = std::size_t{1} << 30;
    const std::size_t row_bytes =
        path_count() * sizeof(PassedPackets) + stages_[0].size() * sizeof(QueueRecord);
    if (static_cast<std::uint64_t>(duration / interval) >= kMostBytes / row_bytes) {
        throw std::invalid_argument("a row every " + std::to_string(interval) + " ns for " +
                                    std::to_string(duration) +
                                    " ns takes over 1 GiB; make interval at least " +
                                    std::to_string(duration / static_cast<Time>(kMostBytes / row_bytes) + 1));
    }
    recording_ = Recording(interval, duration, path_count(), stages_[0].size());
}

void EmulatedNetwork::record_queues(Time now) {
    for (std::size_t hop = 0; hop < stages_[0].size(); ++hop) {
        const Hop& recorded = stages_[0][hop].hop;
        recording_.add_queue(hop, waiting(recorded, now), occupancy_seconds(recorded, now));
    }
}

void EmulatedNetwork::advance_all(Time end) {
    for (const DataDirection way : {DataDirection::forward, DataDirection::backward}) {
        std::vector<Stage>& stages = stages_[index(way)];
        for (std::size_t number = 0; number < stages.size(); ++number) {
            for_each_route(stages[number].hop, end,
                           [&](auto& link, Time until) { serve(way, number, link, until, end); });
        }
        for (Path& path : paths_[index(way)]) {
            if (!path.overtaking) continue;
            path.overtaking->deliver(
                end, [&](Time off_wire, std::uint64_t position) { deliver(path, position, off_wire); });
            while (path.overtaking->has_delivered()) path.overtaking->pop_delivered();
        }
    }
    advanced_to_ = std::max(advanced_to_, end);
}

void EmulatedNetwork::leave_queue(Record& record, Time time, Time delay) {
    record.queue_delay += delay;
    if (record.way != DataDirection::forward) return;
    recording_.add(record.path, time, [&](PassedPackets& row) {
        ++row.queue_samples;
        row.queue_delay += delay;
    });
}

// Calls `offer` with the position and the transit of every packet that reaches a hop before `end` and that
// its policer lets pass.
template <class Offer>
void EmulatedNetwork::for_each_arrival(DataDirection way, std::size_t number, Time end, Offer offer) {
    Stage& stage = stages_[index(way)][number];
    while (!stage.arriving.empty() && stage.arriving.front().transit.arrival < end) {
        Arriving next = pop(stage);
        // The same rule as in NativeSimulation::for_each_arrival_in_chain().
        if (next.rank == kHandedOn && way == DataDirection::backward) ++next.transit.scheduled;
        const Record& record = records_[record_of(next.position)];
        if (stage.hop.policer && !stage.hop.policer->admits(next.transit.arrival, record.wire_bytes)) {
            finish(next.position, next.transit.arrival, Fate::dropped);
            continue;
        }
        offer(next.position, next.transit);
    }
}

void EmulatedNetwork::serve(DataDirection way, std::size_t number, BottleneckLink& link, Time until, Time) {
    for_each_arrival(way, number, until, [&](std::uint64_t position, const Transit& arriving) {
        Record& record = records_[record_of(position)];
        const auto outcome = link.offer(arriving, record.wire_bytes, record.queue_flow);
        if (outcome.dropped) return finish(position, arriving.arrival, Fate::dropped);
        if (outcome.transit.arrival == kNever) return finish(position, arriving.arrival, Fate::held);
        leave_queue(record, arriving.arrival + outcome.queue_delay, outcome.queue_delay);
        if (outcome.lost) return finish(position, outcome.transit.arrival, Fate::lost);
        pass_on(number, position, outcome.transit);
    });
}

void EmulatedNetwork::serve(DataDirection way, std::size_t number, ManagedLink& link, Time until, Time end) {
    const auto depart = [&](const ManagedLink::Departure& departure) {
        const QueuedPacket& queued = departure.packet;
        Record& record = records_[record_of(queued.position)];
        leave_queue(record, departure.transit.scheduled, departure.transit.scheduled - queued.arrival);
        record.ecn = queued.ecn;
        if (departure.lost) return finish(queued.position, departure.transit.arrival, Fate::lost);
        pass_on(number, queued.position, departure.transit);
    };
    const auto drop = [&](const QueuedPacket& queued) {
        finish(queued.position, queued.arrival, Fate::dropped);
    };
    for_each_arrival(way, number, until, [&](std::uint64_t position, const Transit& arriving) {
        const Record& record = records_[record_of(position)];
        link.offer(arriving,
                   {arriving.arrival, position, record.queue_flow,
                    record.wire_bytes - static_cast<std::uint32_t>(kFramingBytes), record.ecn},
                   depart, drop);
    });
    link.advance(end, depart, drop);
}

void EmulatedNetwork::pass_on(std::size_t number, std::uint64_t position, const Transit& transit) {
    const Record& record = records_[record_of(position)];
    Path& path = paths_[index(record.way)][record.path];
    if (path.last_hop != number) {
        push(stages_[index(record.way)][number + 1], transit, kHandedOn, position);
    } else if (path.overtaking) {
        path.overtaking->put_on_wire(transit, position);
    } else {
        deliver(path, position, transit.arrival);
    }
}

void EmulatedNetwork::deliver(Path& path, std::uint64_t position, Time off_wire) {
    const std::uint32_t wire_bytes = records_[record_of(position)].wire_bytes;
    finish(position, path.exit.send(off_wire, wire_bytes).arrival, Fate::delivered);
}

void EmulatedNetwork::finish(std::uint64_t position, Time time, Fate fate) {
    const Record& record = records_[record_of(position)];
    outcomes_.push_back({record.id, time, record.path, record.way, fate, record.ecn});
    if (record.way == DataDirection::forward && fate != Fate::held) {
        recording_.add(record.path, time, [&](PassedPackets& row) {
            if (fate == Fate::delivered) {
                ++row.received_packets;
                row.received_bytes += record.wire_bytes - kLinkBytes;
                row.one_way_delay += time - record.sent;
            } else {
                ++row.dropped_packets;
            }
        });
    }
    settled_.push_back({time, record.queue_delay, record.wire_bytes, record.way, fate});
    std::push_heap(settled_.begin(), settled_.end(), LaterSettled{});
    free_.push_back(static_cast<std::uint32_t>(record_of(position)));
}

Time EmulatedNetwork::next_event() const {
    Time next = kNever;
    for (const std::size_t way : {0, 1}) {
        for (const Stage& stage : stages_[way]) {
            if (!stage.arriving.empty()) next = std::min(next, stage.arriving.front().transit.arrival);
            next = std::min(next, next_start(stage.hop));
        }
        for (const Path& path : paths_[way]) {
            if (path.overtaking) next = std::min(next, path.overtaking->next_on_wire());
        }
    }
    return next;
}

QueueSample EmulatedNetwork::queue(DataDirection way, Time now) const {
    const std::vector<Stage>& stages = stages_[index(way)];
    const Stage& stage = way == DataDirection::forward ? stages.front() : stages.back();
    return waiting(stage.hop, now);
}

}  // namespace quicgym::net
