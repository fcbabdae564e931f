#include "sim/ns3/scenario_check.hpp"

#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

#include "sim/capabilities.hpp"
#include "sim/ns3/addresses.hpp"
#include "sim/ns3/dumbbell.hpp"
#include "sim/ns3/queue_discipline.hpp"
#include "sim/ns3/tcp_flow.hpp"
#include "sim/ns3/wifi_lan.hpp"

namespace quicgym::ns3_host {

namespace {

constexpr std::uint64_t kMtuBytes = 1500;
constexpr std::uint32_t kMaxMcs = 7;
constexpr std::uint64_t kMaxAmpduBytes = 65535;

[[noreturn]] void refuse(const std::string& what) {
    throw std::invalid_argument(what);
}

void check_link(const Link& link, const std::string& where) {
    if (link.rate_bits_per_second == 0 && link.delivery_opportunities_ms.empty())
        refuse(where + ": the rate must be above 0");
    if (link.delay < 0) refuse(where + ": the delay must not be negative");
    Time previous = 0;
    for (const RateStep& step : link.rate_schedule) {
        if (step.at < previous) refuse(where + ": the rate schedule's times must ascend from 0");
        previous = step.at;
    }
    previous = 0;
    for (const DelayStep& step : link.delay_schedule) {
        if (step.at < previous) refuse(where + ": the delay schedule's times must ascend from 0");
        if (step.delay < 0) refuse(where + ": the delay must not be negative");
        previous = step.at;
    }
    previous = 0;
    for (const Reroute& reroute : link.reroutes) {
        if (reroute.at < previous) refuse(where + ": the reroutes' times must ascend from 0");
        if (reroute.rate_bits_per_second == 0) refuse(where + ": the rate of a reroute must be above 0");
        if (reroute.delay < 0) refuse(where + ": the delay must not be negative");
        previous = reroute.at;
    }
    check_queue_discipline(link, where);
}

void check_wifi(const Wifi& wifi, std::size_t flow_count) {
    if (flow_count > kMaxStations) {
        refuse("wifi: an access point has at most " + std::to_string(kMaxStations) +
               " stations, one per flow, not " + std::to_string(flow_count));
    }
    if (wifi.channel_width_mhz != 20 && wifi.channel_width_mhz != 40) {
        refuse("wifi: 802.11n has channels of 20 and 40 MHz, not of " +
               std::to_string(wifi.channel_width_mhz));
    }
    if (wifi.mcs > kMaxMcs) {
        refuse("wifi: one spatial stream has the MCS 0 to " + std::to_string(kMaxMcs) + ", not " +
               std::to_string(wifi.mcs));
    }
    if (wifi.max_ampdu_bytes > kMaxAmpduBytes) {
        refuse("wifi: an A-MPDU of 802.11n has at most " + std::to_string(kMaxAmpduBytes) + " bytes, not " +
               std::to_string(wifi.max_ampdu_bytes));
    }
    if (!(wifi.distance_metres > 0.0)) refuse("wifi: the distance must be above 0");
    if (!(wifi.path_loss_exponent > 0.0)) refuse("wifi: the path loss exponent must be above 0");
    if (wifi.queue_max_delay <= 0) refuse("wifi: the queue's longest delay must be above 0");
    if (wifi.queue_packets == 0 || wifi.queue_packets > std::numeric_limits<std::uint32_t>::max()) {
        refuse("wifi: ns-3 needs a queue limit of 1 to 2^32 - 1, not " + std::to_string(wifi.queue_packets));
    }
    check_link(wifi.wired, "wifi.wired");
    if (wifi.wired.queue_discipline != kDropTail || wifi.wired.loss.kind != LossKind::none ||
        !wifi.wired.rate_schedule.empty() || !wifi.wired.delivery_opportunities_ms.empty()) {
        refuse("wifi.wired: this link has a rate, a delay and a drop-tail queue only");
    }
}

void check_flow(const Flow& flow) {
    const std::string where = "flow \"" + flow.name + "\"";
    if (flow.access_rate_bits_per_second == 0) refuse(where + ": the access rate must be above 0");
    if (flow.access_delay < 0 || flow.extra_delay < 0) refuse(where + ": delays must not be negative");
    if (flow.start < 0 || flow.start_jitter < 0) refuse(where + ": the start must not be negative");
    if (flow.max_datagram_bytes > kMtuBytes - kUdpIpBytes) {
        refuse(where + ": a datagram of " + std::to_string(flow.max_datagram_bytes) +
               " bytes exceeds the MTU of " + std::to_string(kMtuBytes) + " less " +
               std::to_string(kUdpIpBytes) + " for IPv4 and UDP");
    }
    if (flow.transport == Transport::tcp) check_tcp_flow(flow);
}

void check_writable(const std::string& path) {
    if (!std::ofstream(path, std::ios::binary | std::ios::app)) refuse("cannot write to " + path);
}

}  // namespace

void check_scenario(const Scenario& scenario) {
    check_capabilities(scenario, Engine::ns3);
    check_chain(scenario);
    const std::vector<HostPair> pairs = host_pairs(scenario);
    if (scenario.flows.empty() || pairs.size() > kMaxFlows) {
        refuse("ns-3 runs 1 to " + std::to_string(kMaxFlows) + " flows and entries of short flows, not " +
               std::to_string(pairs.size()));
    }
    if (scenario.trace_interval < 0) refuse("the trace interval must not be negative");
    if (scenario.wifi) {
        if (!scenario.short_flows.empty())
            refuse(
                "short_flows: a wireless LAN has a station for each flow, and none for short flows; leave them out, or wifi");
        check_wifi(*scenario.wifi, scenario.flows.size());
    } else {
        for (const DataDirection direction : {DataDirection::forward, DataDirection::backward}) {
            for (std::size_t hop = 0; hop < hop_count(scenario); ++hop)
                check_link(link_of_hop(scenario, direction, hop), name_of_hop(direction, hop));
        }
    }
    for (const HostPair& pair : pairs) check_flow(*pair.flow);
    if (!scenario.pcap_prefix.empty()) {
        if (scenario.wifi) {
            for (const char* end : kWifiPcapFileEnds) check_writable(scenario.pcap_prefix + end);
        } else {
            for (const std::string& end : pcap_file_ends(hop_count(scenario)))
                check_writable(scenario.pcap_prefix + end);
        }
    }
    if (!scenario.flow_monitor_path.empty()) check_writable(scenario.flow_monitor_path);
}

}  // namespace quicgym::ns3_host
