#include "sim/scenario.hpp"

#include <algorithm>
#include <stdexcept>

#include "sim/queue_disciplines.hpp"

namespace quicgym {

namespace {

std::optional<Problem> hops_problem(const Flow& flow, std::size_t hops, const std::string& field) {
    const std::string most = std::to_string(hops);
    const std::size_t last = flow.last_hop == 0 ? hops : flow.last_hop;
    if (last > hops) {
        return Problem{field + ".last_hop", "hops with the bottleneck: " + most,
                       "give at most " + most + ", or leave it out for the last"};
    }
    if (flow.first_hop < 1) return Problem{field + ".first_hop", "hops count from 1", "give 1 to " + most};
    if (flow.first_hop > last) {
        return Problem{field + ".first_hop", "is behind the flow's last hop, " + std::to_string(last),
                       "give at most " + std::to_string(last) +
                           "; a backward flow's hops count from the senders' side, too"};
    }
    return std::nullopt;
}

// A hop hands packets on to the next one in the order in which they arrived, so this order must be kept.
std::optional<Problem> link_problem(const Link& link, bool may_have_trace, const std::string& name) {
    const auto refused = [&](const std::string& field, const std::string& why) {
        return Problem{name + "." + field, "not in a chain: " + why, "leave out " + field + " or chain"};
    };
    if (link.reordering) return refused("reordering", "packets keep their order from hop to hop");
    if (!link.reroutes.empty()) return refused("reroutes", "packets keep their order from hop to hop");
    const Discipline* const discipline = find_discipline(link.queue_discipline);
    if (discipline != nullptr && !discipline->keeps_order) {
        return refused("queue.discipline", "marks of another hop would move packets past one another");
    }
    if (!may_have_trace && !link.delivery_opportunities_ms.empty()) {
        return refused("trace", "only bottleneck and reverse have one");
    }
    return std::nullopt;
}

}  // namespace

void refuse(const std::optional<Problem>& problem, const std::string& prefix) {
    if (problem)
        throw std::invalid_argument(prefix + problem->field + ": " + problem->text + "; " + problem->remedy);
}

std::vector<HostPair> host_pairs(const Scenario& scenario) {
    std::vector<HostPair> pairs;
    for (std::size_t i = 0; i < scenario.flows.size(); ++i)
        pairs.push_back({&scenario.flows[i], "flows." + std::to_string(i)});
    for (std::size_t i = 0; i < scenario.short_flows.size(); ++i)
        pairs.push_back({&scenario.short_flows[i].flow, "short_flows." + std::to_string(i)});
    return pairs;
}

std::uint64_t largest_datagram_bytes(const Scenario& scenario) {
    std::uint64_t largest = 0;
    for (const HostPair& pair : host_pairs(scenario))
        largest = std::max(largest, pair.flow->max_datagram_bytes);
    return largest;
}

std::optional<Problem> chain_problem(const Scenario& scenario) {
    const std::size_t hops = hop_count(scenario);
    if (scenario.reverse_chain.size() != scenario.chain.size()) {
        return Problem{"reverse_chain", "has " + std::to_string(scenario.reverse_chain.size()) + " links",
                       "give one for each of the " + std::to_string(scenario.chain.size()) + " of chain"};
    }
    for (const auto& [flow, field] : host_pairs(scenario)) {
        if (auto found = hops_problem(*flow, hops, field)) return found;
    }
    if (hops == 1) return std::nullopt;
    if (hops > kMaxHops) {
        return Problem{"chain", "has " + std::to_string(hops) + " hops with the bottleneck",
                       "give at most " + std::to_string(kMaxHops - 1) + " links"};
    }
    if (scenario.wifi)
        return Problem{"chain", "wifi takes the bottleneck's place", "leave out wifi or chain"};
    for (const DataDirection direction : {DataDirection::forward, DataDirection::backward}) {
        for (std::size_t hop = 0; hop < hops; ++hop) {
            auto found =
                link_problem(link_of_hop(scenario, direction, hop), hop == 0, name_of_hop(direction, hop));
            if (found) return found;
        }
    }
    return std::nullopt;
}

void check_chain(const Scenario& scenario) {
    refuse(chain_problem(scenario));
}

}  // namespace quicgym
