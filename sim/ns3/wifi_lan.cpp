#include "sim/ns3/wifi_lan.hpp"

#include <ns3/arp-cache.h>
#include <ns3/boolean.h>
#include <ns3/constant-position-mobility-model.h>
#include <ns3/ipv4-interface.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/net-device-container.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/propagation-delay-model.h>
#include <ns3/propagation-loss-model.h>
#include <ns3/ssid.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>
#include <ns3/wifi-helper.h>
#include <ns3/wifi-mac-helper.h>
#include <ns3/yans-wifi-channel.h>
#include <ns3/yans-wifi-helper.h>

#include "sim/ns3/addresses.hpp"
#include "sim/ns3/queue_discipline.hpp"
#include "sim/ns3/routing.hpp"
#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

namespace {

using Device = ns3::Ptr<ns3::WifiNetDevice>;

// The path loss at ns-3's reference distance of 1 m and its transmit power are left as they are.
ns3::Ptr<ns3::YansWifiChannel> create_channel(const Wifi& wifi) {
    auto loss = ns3::CreateObject<ns3::LogDistancePropagationLossModel>();
    loss->SetPathLossExponent(wifi.path_loss_exponent);
    auto channel = ns3::CreateObject<ns3::YansWifiChannel>();
    channel->SetPropagationLossModel(loss);
    channel->SetPropagationDelayModel(ns3::CreateObject<ns3::ConstantSpeedPropagationDelayModel>());
    return channel;
}

void place(const ns3::Ptr<ns3::Node>& node, double metres_from_access_point) {
    auto position = ns3::CreateObject<ns3::ConstantPositionMobilityModel>();
    position->SetPosition({metres_from_access_point, 0.0, 0.0});
    node->AggregateObject(position);
}

void set_queue(const Device& device, const Wifi& wifi) {
    const auto queue = device->GetMac()->GetTxopQueue(ns3::AC_BE);
    queue->SetMaxSize({ns3::QueueSizeUnit::PACKETS, static_cast<std::uint32_t>(wifi.queue_packets)});
    queue->SetMaxDelay(to_ns3(wifi.queue_max_delay));
}

// Entries that never expire: neighbours that ask for each other's address would drop packets meanwhile.
void add_neighbour(const Device& device, ns3::Ipv4Address address, const Device& neighbour) {
    const auto ipv4 = device->GetNode()->GetObject<ns3::Ipv4L3Protocol>();
    const auto interface =
        ipv4->GetInterface(static_cast<std::uint32_t>(ipv4->GetInterfaceForDevice(device)));
    ns3::ArpCache::Entry* entry = interface->GetArpCache()->Add(address);
    entry->SetMacAddress(neighbour->GetAddress());
    entry->MarkPermanent();
}

}  // namespace

WifiLan::WifiLan(const Scenario& scenario) : monitor_(scenario.flows.size()) {
    for (std::size_t flow = 0; flow < scenario.flows.size(); ++flow) senders_.push_back(create_node());
    for (std::size_t flow = 0; flow < scenario.flows.size(); ++flow) stations_.push_back(create_node());
    router_ = create_node();
    access_point_ = create_node();
    connect_senders(scenario);
    connect_router(scenario.wifi->wired);
    install_wifi(*scenario.wifi);
    connect_stations();
    monitor_.watch(access_point_device_->GetMac(), router_device_->GetQueue());
}

void WifiLan::connect_senders(const Scenario& scenario) {
    for (std::size_t flow = 0; flow < senders_.size(); ++flow) {
        const Flow& f = scenario.flows[flow];
        access_devices_.push_back(connect_host(senders_[flow], router_, f.access_rate_bits_per_second,
                                               f.access_delay + f.extra_delay,
                                               link_network(kSenderNetworks, flow)));
    }
}

void WifiLan::connect_router(const Link& wired) {
    auto channel = ns3::CreateObject<TwoDelayChannel>();
    channel->set_delays(wired.delay, wired.delay);
    router_device_ = add_device(router_, channel, wired.rate_bits_per_second, queue_size(wired));
    const auto device = add_device(access_point_, channel, wired.rate_bits_per_second, queue_size(wired));
    const ns3::Ipv4Address router_address = add_address(router_device_, kBottleneckNetwork, 1);
    const ns3::Ipv4Address own_address = add_address(device, kBottleneckNetwork, 2);
    router_->GetObject<DumbbellRouting>()->set_default_route(router_device_, router_address, own_address);
    access_point_->GetObject<DumbbellRouting>()->set_default_route(device, own_address, router_address);
}

void WifiLan::install_wifi(const Wifi& wifi) {
    ns3::YansWifiPhyHelper phy;
    phy.SetChannel(create_channel(wifi));
    phy.Set("ChannelSettings",
            ns3::StringValue("{0, " + std::to_string(wifi.channel_width_mhz) + ", BAND_5GHZ, 0}"));
    ns3::WifiHelper helper;
    helper.SetStandard(ns3::WIFI_STANDARD_80211n);
    helper.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode",
                                   ns3::StringValue("HtMcs" + std::to_string(wifi.mcs)));
    helper.ConfigHtOptions("ShortGuardIntervalSupported", ns3::BooleanValue(wifi.short_guard_interval));
    // It stops the queue disc above a full device, and without one what it stops vanishes uncounted.
    helper.DisableFlowControl();

    ns3::NetDeviceContainer devices;
    const auto install = [&](const ns3::Ptr<ns3::Node>& node, const char* mac_type, double metres) {
        place(node, metres);
        ns3::WifiMacHelper mac;
        mac.SetType(mac_type, "Ssid", ns3::SsidValue(ns3::Ssid("quicgym")), "BE_MaxAmpduSize",
                    ns3::UintegerValue(wifi.max_ampdu_bytes));
        const auto installed = helper.Install(phy, mac, node);
        devices.Add(installed);
        const auto device = ns3::StaticCast<ns3::WifiNetDevice>(installed.Get(0));
        set_queue(device, wifi);
        return device;
    };
    access_point_device_ = install(access_point_, "ns3::ApWifiMac", 0.0);
    for (const auto& station : stations_) {
        station_devices_.push_back(install(station, "ns3::StaWifiMac", wifi.distance_metres));
    }
    ns3::WifiHelper::AssignStreams(devices, 0);
}

void WifiLan::connect_stations() {
    const auto routing = access_point_->GetObject<DumbbellRouting>();
    const auto ipv4 = access_point_->GetObject<ns3::Ipv4>();
    const std::uint32_t interface = ipv4->AddInterface(access_point_device_);
    ipv4->SetMetric(interface, 1);
    for (std::size_t flow = 0; flow < stations_.size(); ++flow) {
        const Device& device = station_devices_[flow];
        const std::uint32_t network = link_network(kReceiverNetworks, flow);
        const ns3::Ipv4Address own_address(network + kRouterHost);
        ipv4->AddAddress(interface, ns3::Ipv4InterfaceAddress(own_address, ns3::Ipv4Mask("/30")));
        const ns3::Ipv4Address station_address = add_address(device, network, kEndHost);
        routing->add_client_route(access_point_device_, own_address, station_address);
        const auto station_routing = stations_[flow]->GetObject<DumbbellRouting>();
        station_routing->set_own_address(station_address);
        station_routing->set_default_route(device, station_address, own_address);
        add_neighbour(access_point_device_, station_address, device);
        add_neighbour(device, own_address, access_point_device_);
    }
    ipv4->SetUp(interface);
}

void WifiLan::enable_pcap(const std::string& prefix) {
    ns3::PointToPointHelper wired;
    wired.EnablePcap(prefix + kWifiPcapFileEnds[0], router_device_, false, true);
    ns3::YansWifiPhyHelper wireless;
    wireless.EnablePcap(prefix + kWifiPcapFileEnds[1], access_point_device_, false, true);
}

void WifiLan::release() {
    monitor_.release();
    station_devices_.clear();
    access_point_device_ = nullptr;
    router_device_ = nullptr;
    access_point_ = nullptr;
    router_ = nullptr;
    stations_.clear();
    senders_.clear();
    access_devices_.clear();
}

}  // namespace quicgym::ns3_host
