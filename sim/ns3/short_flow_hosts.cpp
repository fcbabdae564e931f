#include "sim/ns3/short_flow_hosts.hpp"

#include "sim/ns3/addresses.hpp"

namespace quicgym::ns3_host {

// The connections' controllers may be for L4S or not, so the hosts read every codepoint.
ShortFlowHosts::ShortFlowHosts(const Scenario& scenario, std::size_t entry, std::size_t pair,
                               std::uint64_t seed, const ns3::Ptr<ns3::Node>& sender_node,
                               const ns3::Ptr<ns3::Node>& receiver_node, Failure& failure)
    : senders_(scenario.short_flows[entry], entry, seed, transfers_),
      receivers_(scenario.short_flows[entry], transfers_),
      sender_host_(senders_, sender_node, sender_address(pair), receiver_address(pair), true,
                   static_cast<std::uint32_t>(pair), nullptr, failure),
      receiver_host_(receivers_, receiver_node, receiver_address(pair), sender_address(pair), true,
                     static_cast<std::uint32_t>(pair), nullptr, failure) {}

ShortFlowTotals ShortFlowHosts::totals() const {
    return {.received_packets = receivers_.received_packets(), .received_bytes = receivers_.received_bytes()};
}

std::vector<Transfer> ShortFlowHosts::transfers() const {
    senders_.update_records();
    return transfers_.all();
}

void ShortFlowHosts::release() {
    sender_host_.release();
    receiver_host_.release();
}

}  // namespace quicgym::ns3_host
