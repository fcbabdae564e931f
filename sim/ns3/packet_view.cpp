#include "sim/ns3/packet_view.hpp"

#include <ns3/ipv4-queue-disc-item.h>
#include <ns3/packet.h>
#include <ns3/tcp-header.h>
#include <ns3/tcp-l4-protocol.h>

#include "sim/ns3/addresses.hpp"

namespace quicgym::ns3_host {

namespace {

constexpr std::uint32_t kIpBytes = 20;  // ns-3 writes no IPv4 options
constexpr std::uint32_t kTcpDataOffset = 12;

std::uint32_t big_endian(const std::uint8_t* bytes, int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i) value = value << 8 | bytes[i];
    return value;
}

}  // namespace

std::optional<PacketView> view_of_framed_packet(const ns3::Packet& packet, std::uint32_t link_header_bytes,
                                                std::size_t flow_count) {
    std::uint8_t bytes[kLlcSnapBytes + kIpBytes + kTcpDataOffset + 1];  // the longest link header
    const std::uint32_t wanted = link_header_bytes + kIpBytes + kTcpDataOffset + 1;
    if (packet.CopyData(bytes, wanted) < link_header_bytes + kIpBytes) return std::nullopt;
    const std::uint8_t* ip = bytes + link_header_bytes;
    const std::optional<std::uint32_t> flow = flow_of_sender(big_endian(ip + 12, 4), flow_count);
    if (!flow) return std::nullopt;
    if (ip[9] != ns3::TcpL4Protocol::PROT_NUMBER) return PacketView{*flow, true};
    const std::uint32_t tcp_header_bytes = (ip[kIpBytes + kTcpDataOffset] >> 4) * 4U;
    return PacketView{*flow, big_endian(ip + 2, 2) > kIpBytes + tcp_header_bytes};
}

std::optional<PacketView> view_of_item(const ns3::QueueDiscItem& item, std::size_t flow_count) {
    const auto* ipv4_item = dynamic_cast<const ns3::Ipv4QueueDiscItem*>(&item);
    if (ipv4_item == nullptr) return std::nullopt;
    return view_of_payload(ipv4_item->GetHeader(), *item.GetPacket(), flow_count);
}

std::optional<PacketView> view_of_payload(const ns3::Ipv4Header& header, const ns3::Packet& payload,
                                          std::size_t flow_count) {
    const std::optional<std::uint32_t> flow = flow_of_sender(header.GetSource().Get(), flow_count);
    if (!flow) return std::nullopt;
    if (header.GetProtocol() != ns3::TcpL4Protocol::PROT_NUMBER) return PacketView{*flow, true};
    ns3::TcpHeader tcp;
    payload.PeekHeader(tcp);
    return PacketView{*flow, header.GetPayloadSize() > tcp.GetLength() * 4U};
}

}  // namespace quicgym::ns3_host
