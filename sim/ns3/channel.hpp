// A point-to-point channel whose two directions may have different propagation delays.
#pragma once

#include <ns3/point-to-point-channel.h>

#include <array>
#include <cstdint>

#include "sim/base/time.hpp"

namespace quicgym::ns3_host {

class TwoDelayChannel : public ns3::PointToPointChannel {
public:
    static ns3::TypeId GetTypeId();

    // Seen from the device that was attached first.
    void set_delays(Time there, Time back) { delay_ = {there, back}; }

    bool TransmitStart(ns3::Ptr<const ns3::Packet> packet, ns3::Ptr<ns3::PointToPointNetDevice> source,
                       ns3::Time transmission_time) override;

private:
    std::array<Time, 2> delay_{};
};

}  // namespace quicgym::ns3_host
