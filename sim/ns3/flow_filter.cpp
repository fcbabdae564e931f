#include "sim/ns3/flow_filter.hpp"

#include <ns3/ipv4-queue-disc-item.h>

#include <optional>

#include "sim/ns3/addresses.hpp"

namespace quicgym::ns3_host {

NS_OBJECT_ENSURE_REGISTERED(FlowFilter);

ns3::TypeId FlowFilter::GetTypeId() {
    static const ns3::TypeId id = ns3::TypeId("quicgym::FlowFilter")
                                      .SetParent<ns3::Ipv4PacketFilter>()
                                      .SetGroupName("TrafficControl")
                                      .AddConstructor<FlowFilter>();
    return id;
}

std::int32_t FlowFilter::DoClassify(ns3::Ptr<ns3::QueueDiscItem> item) const {
    const ns3::Ipv4Header& header = ns3::DynamicCast<ns3::Ipv4QueueDiscItem>(item)->GetHeader();
    std::optional<std::uint32_t> flow = flow_of_sender(header.GetSource().Get(), kMaxFlows);
    if (!flow) flow = flow_of_sender(header.GetDestination().Get(), kMaxFlows);
    return flow ? static_cast<std::int32_t>(*flow) : PF_NO_MATCH;
}

}  // namespace quicgym::ns3_host
