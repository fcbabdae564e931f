#include "sim/scenario.hpp"

#include <stdexcept>

namespace quicgym {

namespace {

void check_hops(const Flow& flow, std::size_t hops) {
    const std::size_t last = flow.last_hop == 0 ? hops : flow.last_hop;
    if (flow.first_hop >= 1 && flow.first_hop <= last && last <= hops) return;
    throw std::invalid_argument("flow \"" + flow.name + "\": passes the hops " +
                                std::to_string(flow.first_hop) + " to " + std::to_string(last) +
                                "; give an ascending range within 1 to " + std::to_string(hops));
}

void check_hop(const Link& link, const std::string& where) {
    const auto refuse = [&](const std::string& what) {
        throw std::invalid_argument(where + what + " in a chain; leave out one of the two");
    };
    // What keeps its order up to a hop is handed on to the next one in this order.
    if (link.reordering) refuse(".reordering: packets cannot overtake one another");
    if (link.queue_discipline == "dualpi2") {
        refuse(".queue.discipline = dualpi2: marks of another hop would move packets past one another");
    }
}

}  // namespace

void check_chain(const Scenario& scenario) {
    const std::size_t hops = hop_count(scenario);
    if (scenario.reverse_chain.size() != scenario.chain.size()) {
        throw std::invalid_argument("reverse_chain: has " + std::to_string(scenario.reverse_chain.size()) +
                                    " links; give one for each of the " +
                                    std::to_string(scenario.chain.size()) + " of chain");
    }
    for (const Flow& flow : scenario.flows) check_hops(flow, hops);
    for (const ShortFlows& short_flows : scenario.short_flows) check_hops(short_flows.flow, hops);
    if (hops == 1) return;
    if (hops > kMaxHops) {
        throw std::invalid_argument("chain: has " + std::to_string(hops) + " hops with the bottleneck; " +
                                    std::to_string(kMaxHops) + " is the most");
    }
    if (scenario.wifi) throw std::invalid_argument("chain: wifi takes the bottleneck's place; leave out one");
    for (const DataDirection direction : {DataDirection::forward, DataDirection::backward}) {
        for (std::size_t hop = 0; hop < hops; ++hop) {
            const Link& link = link_of_hop(scenario, direction, hop);
            const std::string name = name_of_hop(direction, hop);
            check_hop(link, name);
            if (hop > 0 && !link.delivery_opportunities_ms.empty()) {
                throw std::invalid_argument(name +
                                            ".trace: only bottleneck and reverse have traces; give a rate");
            }
        }
    }
}

}  // namespace quicgym
