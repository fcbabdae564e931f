#include "sim/ns3/bottleneck_channel.hpp"

#include <ns3/node.h>
#include <ns3/point-to-point-net-device.h>
#include <ns3/simulator.h>

#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

NS_OBJECT_ENSURE_REGISTERED(BottleneckChannel);

ns3::TypeId BottleneckChannel::GetTypeId() {
    static const ns3::TypeId id = ns3::TypeId("quicgym::BottleneckChannel")
                                      .SetParent<TwoDelayChannel>()
                                      .SetGroupName("PointToPoint")
                                      .AddConstructor<BottleneckChannel>();
    return id;
}

void BottleneckChannel::set_wires(net::Wire there, net::Wire back, LossCallback on_loss_there,
                                  LossCallback on_loss_back) {
    there_ = std::make_unique<net::Wire>(std::move(there));
    back_ = std::make_unique<net::Wire>(std::move(back));
    on_loss_there_ = on_loss_there;
    on_loss_back_ = on_loss_back;
}

bool BottleneckChannel::TransmitStart(ns3::Ptr<const ns3::Packet> packet,
                                      ns3::Ptr<ns3::PointToPointNetDevice> source,
                                      ns3::Time transmission_time) {
    const bool is_there = source == GetSource(0);
    net::Wire& wire = is_there ? *there_ : *back_;
    const auto [arrival, lost] = wire.pass(now(), now() + transmission_time.GetTimeStep());
    const ns3::Ptr<ns3::PointToPointNetDevice> destination = GetDestination(is_there ? 0 : 1);
    const std::uint32_t node = destination->GetNode()->GetId();
    const ns3::Time delay = to_ns3(arrival - now());
    if (!lost) {
        ns3::Simulator::ScheduleWithContext(node, delay, &ns3::PointToPointNetDevice::Receive, destination,
                                            packet->Copy());
    } else {
        const LossCallback& on_loss = is_there ? on_loss_there_ : on_loss_back_;
        ns3::Simulator::ScheduleWithContext(node, delay, [&on_loss, packet] { on_loss(packet); });
    }
    return true;
}

}  // namespace quicgym::ns3_host
