// IPv4 routing by arithmetic: the addresses of a dumbbell or a chain say where a packet goes.
#pragma once

#include <ns3/ipv4-routing-protocol.h>

#include <cstdint>
#include <vector>

#include "sim/net/token_bucket.hpp"
#include "sim/scenario.hpp"

namespace quicgym::ns3_host {

// ns-3's static routing walks a list and makes a new route object for every packet; a router of
// many flows has long lists. Here a route is made once and found by index.
class DumbbellRouting : public ns3::Ipv4RoutingProtocol {
public:
    static ns3::TypeId GetTypeId();

    // Packets to `own` are delivered here. Only hosts need this, because routers have no traffic.
    void set_own_address(ns3::Ipv4Address own) { own_ = own; }
    // Everything that no other route covers.
    void set_default_route(ns3::Ptr<ns3::NetDevice> device, ns3::Ipv4Address source,
                           ns3::Ipv4Address gateway);
    // From now on it leads there.
    void change_default_route(ns3::Ptr<ns3::NetDevice> device, ns3::Ipv4Address source,
                              ns3::Ipv4Address gateway);
    // For a router between two hops: the route to the senders' side, for the hosts that add_back_route()
    // names.
    void set_back_route(ns3::Ptr<ns3::NetDevice> device, ns3::Ipv4Address source, ns3::Ipv4Address gateway);
    void add_back_route(ns3::Ipv4Address client);
    // Before the queue of this device, after its route is set; `on_drop` is told of what it drops, may be
    // null.
    using DropCallback = ns3::Callback<void, const ns3::Ipv4Header&, ns3::Ptr<const ns3::Packet>>;
    void add_policer(const ns3::Ptr<ns3::NetDevice>& device, const Policer& policer, DropCallback on_drop);
    // To an end host of the address plan.
    void add_client_route(ns3::Ptr<ns3::NetDevice> device, ns3::Ipv4Address source, ns3::Ipv4Address client);

    ns3::Ptr<ns3::Ipv4Route> RouteOutput(ns3::Ptr<ns3::Packet> packet, const ns3::Ipv4Header& header,
                                         ns3::Ptr<ns3::NetDevice> device,
                                         ns3::Socket::SocketErrno& error) override;
    bool RouteInput(ns3::Ptr<const ns3::Packet> packet, const ns3::Ipv4Header& header,
                    ns3::Ptr<const ns3::NetDevice> device, const UnicastForwardCallback& forward,
                    const MulticastForwardCallback& forward_multicast, const LocalDeliverCallback& deliver,
                    const ErrorCallback& fail) override;
    void NotifyInterfaceUp(std::uint32_t) override {}
    void NotifyInterfaceDown(std::uint32_t) override {}
    void NotifyAddAddress(std::uint32_t, ns3::Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(std::uint32_t, ns3::Ipv4InterfaceAddress) override {}
    void SetIpv4(ns3::Ptr<ns3::Ipv4> ipv4) override { ipv4_ = ns3::PeekPointer(ipv4); }
    void PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper> stream, ns3::Time::Unit unit) const override;

protected:
    void DoDispose() override;

private:
    struct PolicedRoute {
        ns3::Ptr<ns3::Ipv4Route> route;
        net::TokenBucket bucket;
        DropCallback on_drop;
    };

    const ns3::Ptr<ns3::Ipv4Route>& route_to(ns3::Ipv4Address destination) const;
    ns3::Ptr<ns3::Ipv4Route>& client_route(ns3::Ipv4Address client);

    ns3::Ipv4* ipv4_ = nullptr;  // owns this object
    ns3::Ipv4Address own_;
    ns3::Ptr<ns3::Ipv4Route> default_route_;
    ns3::Ptr<ns3::Ipv4Route> back_route_;
    std::vector<PolicedRoute> policed_routes_;
    // By flow: to its sender and to its receiver; null where the default route leads there.
    std::vector<ns3::Ptr<ns3::Ipv4Route>> sender_routes_;
    std::vector<ns3::Ptr<ns3::Ipv4Route>> receiver_routes_;
};

}  // namespace quicgym::ns3_host
