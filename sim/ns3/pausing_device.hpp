// ns-3's point-to-point device with a transmitter that may pause: outages, bursts, traces.
#pragma once

#include <ns3/packet.h>
#include <ns3/point-to-point-net-device.h>

#include <memory>

#include "sim/net/transmitter.hpp"

namespace quicgym::ns3_host {

// ns-3's own device begins to transmit whenever it is idle, and keeps its transmitter to itself. This one
// puts a packet into its queue as that one does, and takes it out when a net::Transmitter says. It receives
// as that one does.
class PausingDevice : public ns3::PointToPointNetDevice {
public:
    static ns3::TypeId GetTypeId();

    void set_transmitter(const Link& link) { transmitter_ = std::make_unique<net::Transmitter>(link); }

    bool Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& destination, std::uint16_t protocol) override;

private:
    void begin_next(bool continues);
    void transmit(Time duration);
    void complete();

    std::unique_ptr<net::Transmitter> transmitter_;
    bool busy_ = false;  // transmits, or waits for the moment at which it may
};

}  // namespace quicgym::ns3_host
