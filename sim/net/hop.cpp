#include "sim/net/hop.hpp"

#include <algorithm>

namespace quicgym::net {

namespace {

std::variant<BottleneckLink, ManagedLink> make_link(const Scenario& scenario, DataDirection direction,
                                                    std::size_t hop, std::uint64_t seed) {
    const Link& link = link_of_hop(scenario, direction, hop);
    check_queue(link, name_of_hop(direction, hop));
    Wire wire = wire_of_hop(scenario, direction, hop, seed);
    if (link.queue_discipline == kDropTail) return BottleneckLink(link, std::move(wire));
    std::uint64_t largest_datagram = 0;
    for (const Flow& flow : scenario.flows)
        largest_datagram = std::max(largest_datagram, flow.max_datagram_bytes);
    for (const ShortFlows& short_flows : scenario.short_flows)
        largest_datagram = std::max(largest_datagram, short_flows.flow.max_datagram_bytes);
    const DisciplineSettings settings{link, largest_datagram + kUdpIpBytes, seed,
                                      queue_stream(direction, hop)};
    return ManagedLink(link, make_discipline(settings), std::move(wire));
}

}  // namespace

Hop make_hop(const Scenario& scenario, DataDirection direction, std::size_t hop, std::uint64_t seed) {
    Hop made(make_link(scenario, direction, hop, seed));
    if (const auto& policer = link_of_hop(scenario, direction, hop).policer) made.policer.emplace(*policer);
    return made;
}

}  // namespace quicgym::net
