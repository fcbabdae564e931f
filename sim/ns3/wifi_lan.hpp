// The topology: sender i – router – access point ~ station i, of ns-3's nodes and devices.
#pragma once

#include <ns3/net-device.h>
#include <ns3/node.h>
#include <ns3/point-to-point-net-device.h>
#include <ns3/ptr.h>
#include <ns3/wifi-net-device.h>

#include <string>
#include <vector>

#include "sim/ns3/access_point_monitor.hpp"
#include "sim/ns3/network.hpp"
#include "sim/ns3/point_to_point.hpp"
#include "sim/scenario.hpp"

namespace quicgym::ns3_host {

// What pcap files are called after the prefix: the wired link seen from the router, then the air seen
// from the access point.
inline constexpr const char* kWifiPcapFileEnds[] = {"-router.pcap", "-access-point.pcap"};
inline constexpr std::size_t kMaxStations = 2007;  // association identifiers that 802.11 has

// The senders' access links lead to the router and never drop; stations have none. Nodes are numbered
// senders, stations, router, access point.
class WifiLan final : public Network {
public:
    // scenario.wifi is there.
    explicit WifiLan(const Scenario& scenario);

    const ns3::Ptr<ns3::Node>& sender(std::size_t flow) const override { return senders_[flow]; }
    const ns3::Ptr<ns3::Node>& receiver(std::size_t flow) const override { return stations_[flow]; }
    void enable_pcap(const std::string& prefix) override;
    void add_totals(std::size_t flow, FlowTotals& totals) const override {
        monitor_.add_totals(flow, totals);
    }
    double queue_occupancy_seconds(Time now) const override { return monitor_.occupancy_seconds(now); }
    QueueSample sample_queue(std::size_t /*hop*/, Time now) const override { return monitor_.sample(now); }
    QueueSample sample_access_queue(std::size_t flow, Time now) const override {
        return sample_device(*access_devices_[flow], now);
    }
    void release() override;

private:
    void connect_senders(const Scenario& scenario);
    void connect_router(const Link& wired);
    void install_wifi(const Wifi& wifi);
    void connect_stations();

    AccessPointMonitor monitor_;
    std::vector<ns3::Ptr<ns3::Node>> senders_;
    std::vector<ns3::Ptr<ns3::PointToPointNetDevice>> access_devices_;  // of the senders
    std::vector<ns3::Ptr<ns3::Node>> stations_;
    ns3::Ptr<ns3::Node> router_;
    ns3::Ptr<ns3::Node> access_point_;
    ns3::Ptr<ns3::PointToPointNetDevice> router_device_;
    ns3::Ptr<ns3::WifiNetDevice> access_point_device_;
    std::vector<ns3::Ptr<ns3::WifiNetDevice>> station_devices_;
};

}  // namespace quicgym::ns3_host
