#include "sim/capabilities.hpp"

#include <stdexcept>
#include <utility>

#include "sim/queue_disciplines.hpp"

namespace quicgym {

namespace {

using Fields = std::vector<std::string>;

Fields given(bool is_given, const std::string& field) {
    return is_given ? Fields{field} : Fields{};
}

// The results of `field_of` for each direction of each bottleneck, without the empty ones.
template <class FieldOf>
Fields of_links(const Scenario& scenario, FieldOf field_of) {
    Fields fields;
    const auto add = [&](const Link& link, DataDirection direction, std::size_t hop) {
        const std::string field = field_of(link);
        if (!field.empty()) fields.push_back(name_of_hop(direction, hop) + "." + field);
    };
    add(scenario.bottleneck, DataDirection::forward, 0);
    add(scenario.reverse, DataDirection::backward, 0);
    for (std::size_t i = 0; i < scenario.chain.size(); ++i)
        add(scenario.chain[i], DataDirection::forward, i + 1);
    for (std::size_t i = 0; i < scenario.reverse_chain.size(); ++i)
        add(scenario.reverse_chain[i], DataDirection::backward, i + 1);
    return fields;
}

}  // namespace

const std::vector<Capability>& capabilities() {
    static const std::vector<Capability> table = {
        {.name = "wireless-lan",
         .text = "a wireless LAN",
         .native = false,
         .ns3 = true,
         .needed_by = [](const Scenario& scenario) { return given(scenario.wifi.has_value(), "wifi"); }},
        {.name = "queue-discipline",
         .text = "this queue discipline",
         .native = true,
         .ns3 = false,
         .needed_by =
             [](const Scenario& scenario) {
                 return of_links(scenario, [](const Link& link) -> std::string {
                     const Discipline* const discipline = find_discipline(link.queue_discipline);
                     const bool in_ns3 = discipline == nullptr || discipline->in_ns3();
                     return in_ns3 ? "" : "queue.discipline = " + discipline->name;
                 });
             }},
        {.name = "tcp",
         .text = "ns-3's TCP",
         .native = false,
         .ns3 = true,
         .needed_by =
             [](const Scenario& scenario) {
                 Fields fields;
                 for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
                     if (scenario.flows[i].transport == Transport::tcp) {
                         fields.push_back("flows." + std::to_string(i) + ".transport = tcp");
                     }
                 }
                 return fields;
             }},
        {.name = "fragmentation",
         .text = "fragments of IP packets",
         .native = true,
         .ns3 = false,
         .needed_by =
             [](const Scenario& scenario) {
                 Fields fields;
                 for (const auto& [flow, field] : host_pairs(scenario)) {
                     if (flow->mtu_bytes > 0) fields.push_back(field + ".access.mtu_bytes");
                 }
                 return fields;
             }},
        {.name = "packet-capture",
         .text = "a packet capture",
         .native = false,
         .ns3 = true,
         .needed_by =
             [](const Scenario& scenario) { return given(!scenario.pcap_prefix.empty(), "pcap_prefix"); }},
        {.name = "flow-monitor",
         .text = "a report of ns-3's FlowMonitor",
         .native = false,
         .ns3 = true,
         .needed_by =
             [](const Scenario& scenario) {
                 return given(!scenario.flow_monitor_path.empty(), "flow_monitor_path");
             }},
    };
    return table;
}

std::vector<std::string> lacking(const Scenario& scenario, Engine engine) {
    Fields fields;
    for (const Capability& capability : capabilities()) {
        if (capability.in(engine)) continue;
        for (std::string& field : capability.needed_by(scenario)) fields.push_back(std::move(field));
    }
    return fields;
}

void check_capabilities(const Scenario& scenario, Engine engine) {
    const bool is_native = engine == Engine::native;
    for (const Capability& capability : capabilities()) {
        if (capability.in(engine)) continue;
        for (const std::string& field : capability.needed_by(scenario)) {
            throw std::invalid_argument(field + ": " + capability.text + " runs on the " +
                                        (is_native ? "ns3" : "native") + " engine only; the " +
                                        (is_native ? "native" : "ns3") + " engine cannot do it");
        }
    }
}

}  // namespace quicgym
