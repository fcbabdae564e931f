#include "sim/ns3/pausing_device.hpp"

#include <ns3/point-to-point-channel.h>
#include <ns3/ppp-header.h>
#include <ns3/queue.h>
#include <ns3/simulator.h>

#include <stdexcept>

#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

namespace {

constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint16_t kPppIpv4 = 0x0021;  // RFC 1332

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(PausingDevice);

ns3::TypeId PausingDevice::GetTypeId() {
    static const ns3::TypeId id = ns3::TypeId("quicgym::PausingDevice")
                                      .SetParent<ns3::PointToPointNetDevice>()
                                      .SetGroupName("PointToPoint")
                                      .AddConstructor<PausingDevice>();
    return id;
}

bool PausingDevice::Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address&, std::uint16_t protocol) {
    if (protocol != kEtherTypeIpv4) throw std::logic_error("a pausing device sends IPv4 only");
    ns3::PppHeader header;
    header.SetProtocol(kPppIpv4);
    packet->AddHeader(header);
    if (!GetQueue()->Enqueue(packet)) return false;
    if (!busy_) begin_next(false);
    return true;
}

void PausingDevice::begin_next(bool continues) {
    const ns3::Ptr<const ns3::Packet> packet = GetQueue()->Peek();
    if (!packet) return;
    busy_ = true;
    const auto [start, finish] = transmitter_->next(now(), packet->GetSize(), continues);
    if (start == kNever) return;
    if (start == now()) {
        transmit(finish - start);
    } else {
        ns3::Simulator::Schedule(to_ns3(start - now()), &PausingDevice::transmit, this, finish - start);
    }
}

void PausingDevice::transmit(Time duration) {
    const ns3::Ptr<ns3::Packet> packet = GetQueue()->Dequeue();
    // Like ns-3's device, this schedules the end of the transmission before the packet's arrival.
    ns3::Simulator::Schedule(to_ns3(duration), &PausingDevice::complete, this);
    ns3::DynamicCast<ns3::PointToPointChannel>(GetChannel())->TransmitStart(packet, this, to_ns3(duration));
}

void PausingDevice::complete() {
    busy_ = false;
    begin_next(true);
}

}  // namespace quicgym::ns3_host
