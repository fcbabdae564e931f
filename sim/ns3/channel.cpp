#include "sim/ns3/channel.hpp"

#include <ns3/node.h>
#include <ns3/packet.h>
#include <ns3/point-to-point-net-device.h>
#include <ns3/simulator.h>

#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

NS_OBJECT_ENSURE_REGISTERED(TwoDelayChannel);

ns3::TypeId TwoDelayChannel::GetTypeId() {
    static const ns3::TypeId id = ns3::TypeId("quicgym::TwoDelayChannel")
                                      .SetParent<ns3::PointToPointChannel>()
                                      .SetGroupName("PointToPoint")
                                      .AddConstructor<TwoDelayChannel>();
    return id;
}

bool TwoDelayChannel::TransmitStart(ns3::Ptr<const ns3::Packet> packet,
                                    ns3::Ptr<ns3::PointToPointNetDevice> source,
                                    ns3::Time transmission_time) {
    const std::uint32_t direction = source == GetSource(0) ? 0 : 1;
    const ns3::Ptr<ns3::PointToPointNetDevice> destination = GetDestination(direction);
    // The source keeps its packet until the transmission ends; the destination takes headers off a copy.
    ns3::Simulator::ScheduleWithContext(destination->GetNode()->GetId(),
                                        transmission_time + to_ns3(delay_[direction]),
                                        &ns3::PointToPointNetDevice::Receive, destination, packet->Copy());
    return true;
}

}  // namespace quicgym::ns3_host
