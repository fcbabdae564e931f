#include "sim/ns3/routing.hpp"

#include <ns3/ipv4-route.h>
#include <ns3/net-device.h>
#include <ns3/node.h>

#include <utility>

#include "sim/ns3/addresses.hpp"
#include "sim/ns3/packet_view.hpp"
#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

namespace {

ns3::Ptr<ns3::Ipv4Route> make_route(ns3::Ptr<ns3::NetDevice> device, ns3::Ipv4Address source,
                                    ns3::Ipv4Address gateway) {
    auto route = ns3::Create<ns3::Ipv4Route>();
    route->SetSource(source);
    route->SetGateway(gateway);
    route->SetOutputDevice(device);
    return route;
}

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(DumbbellRouting);

ns3::TypeId DumbbellRouting::GetTypeId() {
    static const ns3::TypeId id = ns3::TypeId("quicgym::DumbbellRouting")
                                      .SetParent<ns3::Ipv4RoutingProtocol>()
                                      .SetGroupName("Internet")
                                      .AddConstructor<DumbbellRouting>();
    return id;
}

void DumbbellRouting::set_default_route(ns3::Ptr<ns3::NetDevice> device, ns3::Ipv4Address source,
                                        ns3::Ipv4Address gateway) {
    default_route_ = make_route(device, source, gateway);
}

void DumbbellRouting::change_default_route(ns3::Ptr<ns3::NetDevice> device, ns3::Ipv4Address source,
                                           ns3::Ipv4Address gateway) {
    default_route_->SetSource(source);
    default_route_->SetGateway(gateway);
    default_route_->SetOutputDevice(device);
}

void DumbbellRouting::set_back_route(ns3::Ptr<ns3::NetDevice> device, ns3::Ipv4Address source,
                                     ns3::Ipv4Address gateway) {
    back_route_ = make_route(device, source, gateway);
}

void DumbbellRouting::add_back_route(ns3::Ipv4Address client) {
    client_route(client) = back_route_;
}

void DumbbellRouting::add_client_route(ns3::Ptr<ns3::NetDevice> device, ns3::Ipv4Address source,
                                       ns3::Ipv4Address client) {
    client_route(client) = make_route(device, source, client);
}

ns3::Ptr<ns3::Ipv4Route>& DumbbellRouting::client_route(ns3::Ipv4Address client) {
    const bool is_sender = client.Get() < kReceiverNetworks;
    auto& routes = is_sender ? sender_routes_ : receiver_routes_;
    const std::uint32_t flow = (client.Get() - (is_sender ? kSenderNetworks : kReceiverNetworks)) / 4;
    if (routes.size() <= flow) routes.resize(flow + 1);
    return routes[flow];
}

void DumbbellRouting::add_policer(const ns3::Ptr<ns3::NetDevice>& device, const Policer& policer,
                                  DropCallback on_drop) {
    const bool goes_back = back_route_ && back_route_->GetOutputDevice() == device;
    policed_routes_.push_back({goes_back ? back_route_ : default_route_, net::TokenBucket(policer), on_drop});
}

const ns3::Ptr<ns3::Ipv4Route>& DumbbellRouting::route_to(ns3::Ipv4Address destination) const {
    for (const auto& [networks, routes] :
         {std::pair(kSenderNetworks, &sender_routes_), std::pair(kReceiverNetworks, &receiver_routes_)}) {
        const std::uint32_t flow = (destination.Get() - networks) / 4;  // wraps to a large number below them
        if (flow < routes->size() && (*routes)[flow]) return (*routes)[flow];
    }
    return default_route_;
}

ns3::Ptr<ns3::Ipv4Route> DumbbellRouting::RouteOutput(ns3::Ptr<ns3::Packet>, const ns3::Ipv4Header& header,
                                                      ns3::Ptr<ns3::NetDevice>,
                                                      ns3::Socket::SocketErrno& error) {
    error = ns3::Socket::ERROR_NOTERROR;
    return route_to(header.GetDestination());
}

bool DumbbellRouting::RouteInput(ns3::Ptr<const ns3::Packet> packet, const ns3::Ipv4Header& header,
                                 ns3::Ptr<const ns3::NetDevice> device, const UnicastForwardCallback& forward,
                                 const MulticastForwardCallback&, const LocalDeliverCallback& deliver,
                                 const ErrorCallback&) {
    if (header.GetDestination() == own_) {
        deliver(packet, header, static_cast<std::uint32_t>(ipv4_->GetInterfaceForDevice(device)));
        return true;
    }
    const ns3::Ptr<ns3::Ipv4Route>& route = route_to(header.GetDestination());
    const std::uint64_t wire_bytes = packet->GetSize() + header.GetSerializedSize() + kPppBytes;
    for (PolicedRoute& policed : policed_routes_) {
        if (route != policed.route || policed.bucket.admits(now(), wire_bytes)) continue;
        if (!policed.on_drop.IsNull()) policed.on_drop(header, packet);
        return true;
    }
    forward(route, packet, header);
    return true;
}

void DumbbellRouting::PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper> stream, ns3::Time::Unit) const {
    std::ostream& out = *stream->GetStream();
    for (const auto* routes : {&sender_routes_, &receiver_routes_}) {
        for (const auto& route : *routes) {
            if (route) out << *route << '\n';
        }
    }
    out << "default " << *default_route_ << '\n';
}

void DumbbellRouting::DoDispose() {
    ipv4_ = nullptr;
    default_route_ = nullptr;
    back_route_ = nullptr;
    policed_routes_.clear();
    sender_routes_.clear();
    receiver_routes_.clear();
    ns3::Ipv4RoutingProtocol::DoDispose();
}

}  // namespace quicgym::ns3_host
