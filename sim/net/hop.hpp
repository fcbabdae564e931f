// One hop of a direction: a link, others where packets are rerouted, and in a chain what is on its way to it
// from the hop before. And what lies between a host and its first hop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/ring.hpp"
#include "sim/net/link.hpp"
#include "sim/net/managed_link.hpp"
#include "sim/net/token_bucket.hpp"

namespace quicgym::net {

// A packet on its way to a hop.
struct AtHop {
    Transit transit;
    std::uint64_t position;  // in its flow's ring
    std::uint32_t flow;
};

// The packets that one hop hands on to the next, in the order of transmission, which is that of arrival.
class Handover {
public:
    void push(const AtHop& packet) {
        packets_.make_room(head_, tail_);
        packets_[tail_++] = packet;
    }
    Time next_arrival() const { return head_ == tail_ ? kNever : packets_[head_].transit.arrival; }
    const Transit& next() const { return packets_[head_].transit; }
    AtHop pop() { return packets_[head_++]; }

private:
    Ring<AtHop> packets_;
    std::uint64_t head_ = 0;
    std::uint64_t tail_ = 0;
};

// A path that packets take which arrive from `from` on, up to the next one's.
struct Route {
    Time from;
    std::variant<BottleneckLink, ManagedLink> link;
};

struct Hop {
    std::vector<Route> routes;  // ascending, the first from time 0
    std::optional<TokenBucket> policer;
    std::vector<std::size_t> entering;  // paths whose hosts send into this hop
    Handover handover;                  // from the hop before
};

// Calls `serve(link, until)` with the link of each route, which gets what arrives before `until`; `end` for
// the last.
template <class Serve>
void for_each_route(Hop& hop, Time end, Serve serve) {
    for (std::size_t i = 0; i < hop.routes.size(); ++i) {
        const Time until = i + 1 < hop.routes.size() ? std::min(end, hop.routes[i + 1].from) : end;
        std::visit([&](auto& link) { serve(link, until); }, hop.routes[i].link);
    }
}

// The packets that wait on all routes, and their integral over time.
QueueSample waiting(const Hop& hop, Time now);
double occupancy_seconds(const Hop& hop, Time now);

// When the next transmission starts that is not known at its packet's arrival.
Time next_start(const Hop& hop);

// A link of the scenario with its queue, policer and random numbers. `hop` counts from the senders' side.
Hop make_hop(const Scenario& scenario, DataDirection direction, std::size_t hop, std::uint64_t seed);

// The access links of a flow's two hosts; each serves for both directions.
struct AccessLinks {
    AccessLink left;  // on the senders' side of the network
    AccessLink right;
};

inline AccessLinks access_links(const Flow& flow) {
    const AccessLink at_sender(flow.access_rate_bits_per_second, flow.access_delay + flow.extra_delay);
    const AccessLink at_receiver(flow.access_rate_bits_per_second, flow.access_delay);
    if (flow.direction == DataDirection::forward) return {at_sender, at_receiver};
    return {at_receiver, at_sender};
}

}  // namespace quicgym::net
