// Tells a queue disc which flow a packet belongs to, in either direction, by the hosts' addresses.
#pragma once

#include <ns3/ipv4-packet-filter.h>

#include <cstdint>

namespace quicgym::ns3_host {

class FlowFilter : public ns3::Ipv4PacketFilter {
public:
    static ns3::TypeId GetTypeId();

private:
    std::int32_t DoClassify(ns3::Ptr<ns3::QueueDiscItem> item) const override;
};

}  // namespace quicgym::ns3_host
