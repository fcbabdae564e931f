#include "sim/net/hop.hpp"

#include <algorithm>

namespace quicgym::net {

namespace {

// `link`: the hop's, or after so many reroutes the path of then.
std::variant<BottleneckLink, ManagedLink> make_link(const Scenario& scenario, const Link& link,
                                                    DataDirection direction, std::size_t hop,
                                                    std::uint64_t seed, std::size_t reroutes) {
    check_queue(link, name_of_hop(direction, hop));
    Wire wire = wire_of_hop(scenario, direction, hop, seed, reroutes);
    if (link.queue_discipline == kDropTail) return BottleneckLink(link, std::move(wire));
    const DisciplineSettings settings{link, largest_datagram_bytes(scenario) + kUdpIpBytes, seed,
                                      queue_stream(direction, hop, reroutes)};
    return ManagedLink(link, make_discipline(settings), std::move(wire));
}

}  // namespace

Hop make_hop(const Scenario& scenario, DataDirection direction, std::size_t hop, std::uint64_t seed) {
    const Link& link = link_of_hop(scenario, direction, hop);
    Hop made;
    made.routes.push_back({0, make_link(scenario, link, direction, hop, seed, 0)});
    for (std::size_t i = 1; i <= link.reroutes.size(); ++i) {
        made.routes.push_back(
            {link.reroutes[i - 1].at, make_link(scenario, path_of(link, i), direction, hop, seed, i)});
    }
    if (link.policer) made.policer.emplace(*link.policer);
    return made;
}

QueueSample waiting(const Hop& hop, Time now) {
    QueueSample sum{now, 0, 0};
    for (const Route& route : hop.routes) {
        const QueueSample sample =
            std::visit([&](const auto& link) { return link.waiting(now); }, route.link);
        sum.packets += sample.packets;
        sum.bytes += sample.bytes;
    }
    return sum;
}

double occupancy_seconds(const Hop& hop, Time now) {
    double sum = 0.0;
    for (const Route& route : hop.routes)
        sum += std::visit([&](const auto& link) { return link.occupancy_seconds(now); }, route.link);
    return sum;
}

Time next_start(const Hop& hop) {
    Time next = kNever;
    for (const Route& route : hop.routes) {
        if (const auto* link = std::get_if<ManagedLink>(&route.link))
            next = std::min(next, link->next_start());
    }
    return next;
}

}  // namespace quicgym::net
