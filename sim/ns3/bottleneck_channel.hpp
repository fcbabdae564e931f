// The bottleneck's wires: ns-3's point-to-point channel with the delays and losses of a net::Wire.
#pragma once

#include <ns3/callback.h>
#include <ns3/packet.h>

#include <memory>

#include "sim/net/wire.hpp"
#include "sim/ns3/channel.hpp"

namespace quicgym::ns3_host {

class BottleneckChannel : public TwoDelayChannel {
public:
    using LossCallback = ns3::Callback<void, ns3::Ptr<const ns3::Packet>>;

    static ns3::TypeId GetTypeId();

    // Seen from the device that was attached first. The callbacks are told of what is lost there and on the
    // way back, when it would have arrived, with its PPP header.
    void set_wires(net::Wire there, net::Wire back, LossCallback on_loss_there, LossCallback on_loss_back);

    bool TransmitStart(ns3::Ptr<const ns3::Packet> packet, ns3::Ptr<ns3::PointToPointNetDevice> source,
                       ns3::Time transmission_time) override;

private:
    std::unique_ptr<net::Wire> there_;
    std::unique_ptr<net::Wire> back_;
    LossCallback on_loss_there_;
    LossCallback on_loss_back_;
};

}  // namespace quicgym::ns3_host
