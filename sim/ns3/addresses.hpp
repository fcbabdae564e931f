// The IPv4 plan of a dumbbell or a chain: one /30 network per link, hosts numbered by flow.
//
//   sender i    10.(64 + …).…   its router has address 1 of the network, the host address 2
//   receiver i  10.(128 + …).…  likewise
//   hop h       10.1.(4h - 4)/30, from 1: router h has address 1 of the network, router h + 1 address 2
#pragma once

#include <ns3/ipv4-address.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace quicgym::ns3_host {

inline constexpr std::size_t kMaxFlows = 1U << 16;
inline constexpr std::uint16_t kPort = 4433;

inline constexpr std::uint32_t kSenderNetworks = 10U << 24 | 64U << 16;
inline constexpr std::uint32_t kReceiverNetworks = 10U << 24 | 128U << 16;
inline constexpr std::uint32_t kBottleneckNetwork = 10U << 24 | 1U << 16;
inline constexpr std::uint32_t kRouterHost = 1;
inline constexpr std::uint32_t kEndHost = 2;

inline constexpr std::uint32_t link_network(std::uint32_t networks, std::size_t flow) {
    return networks + 4U * static_cast<std::uint32_t>(flow);
}

inline ns3::Ipv4Address sender_address(std::size_t flow) {
    return ns3::Ipv4Address(link_network(kSenderNetworks, flow) + kEndHost);
}

inline ns3::Ipv4Address receiver_address(std::size_t flow) {
    return ns3::Ipv4Address(link_network(kReceiverNetworks, flow) + kEndHost);
}

inline std::optional<std::uint32_t> flow_of_sender(std::uint32_t address, std::size_t flow_count) {
    const std::uint32_t offset = address - kSenderNetworks;  // wraps to a large number below it
    if (offset / 4 >= flow_count || offset % 4 != kEndHost) return std::nullopt;
    return offset / 4;
}

}  // namespace quicgym::ns3_host
