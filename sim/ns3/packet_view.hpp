// The fields of a packet that the bottleneck's statistics need, read in place without removing a header.
#pragma once

#include <ns3/ipv4-header.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace ns3 {
class Packet;
class QueueDiscItem;
}  // namespace ns3

namespace quicgym::ns3_host {

struct PacketView {
    std::uint32_t flow;
    bool carries_data;  // a UDP datagram, or a TCP segment with payload
};

// The link's header before the IPv4 header.
inline constexpr std::uint32_t kPppBytes = 2;
inline constexpr std::uint32_t kLlcSnapBytes = 8;

// Both return none for what no flow's data sender sent.
// On the wire and in a device's queue: the link's header of that size, IPv4 header, payload.
std::optional<PacketView> view_of_framed_packet(const ns3::Packet& packet, std::uint32_t link_header_bytes,
                                                std::size_t flow_count);
// For routers and queue discs, where the IPv4 header is stored separately from the packet.
std::optional<PacketView> view_of_payload(const ns3::Ipv4Header& header, const ns3::Packet& payload,
                                          std::size_t flow_count);
std::optional<PacketView> view_of_item(const ns3::QueueDiscItem& item, std::size_t flow_count);

}  // namespace quicgym::ns3_host
