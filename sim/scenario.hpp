// A scenario as plain data, which both engines read. The Python models in envs/scenarios validate and fill
// these structures. To add a field, add a member here with its name in the structure's QUICGYM_FIELDS, and a
// field to the model there. If only one engine can do it, add a row to sim/capabilities.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controllers/controller.hpp"
#include "sim/base/fields.hpp"
#include "sim/base/random.hpp"
#include "sim/base/size_distribution.hpp"
#include "sim/base/time.hpp"

namespace quicgym {

// Wire bytes around a QUIC datagram: UDP 8, IPv4 20, PPP 2, as ns-3's point-to-point device sends.
inline constexpr std::uint64_t kUdpIpBytes = 28;
inline constexpr std::uint64_t kLinkBytes = kUdpIpBytes + 2;

QUICGYM_ENUM(QueueUnit, packets, bytes)

QUICGYM_ENUM(LossKind, none, bernoulli, gilbert_elliott)

// Loss on the wire, after the queue. Gilbert–Elliott moves between a good and a bad state with
// the given probabilities per packet and then loses the packet with that state's probability.
struct LossModel {
    LossKind kind = LossKind::none;
    double probability = 0.0;  // bernoulli
    double good_to_bad = 0.0;
    double bad_to_good = 0.0;
    double loss_in_good = 0.0;
    double loss_in_bad = 0.0;

    QUICGYM_FIELDS(LossModel, kind, probability, good_to_bad, bad_to_good, loss_in_good, loss_in_bad)
};

struct LossStep {
    Time at = 0;
    LossModel loss;

    QUICGYM_FIELDS(LossStep, at, loss)
};

struct RateStep {
    Time at = 0;
    std::uint64_t rate_bits_per_second = 0;

    QUICGYM_FIELDS(RateStep, at, rate_bits_per_second)
};

// From `at` on, arriving packets take another path with a separate queue. Packets that arrived before stay on
// the path that they took.
struct Reroute {
    Time at = 0;
    std::uint64_t rate_bits_per_second = 0;
    Time delay = 0;

    QUICGYM_FIELDS(Reroute, at, rate_bits_per_second, delay)
};

inline constexpr const char* kDropTail = "drop-tail";

struct DelayStep {
    Time at = 0;
    Time delay = 0;

    QUICGYM_FIELDS(DelayStep, at, delay)
};

QUICGYM_ENUM(JitterKind, none, uniform, normal)

// A delay on top of the propagation, drawn for every packet; never below 0.
struct Jitter {
    JitterKind kind = JitterKind::none;
    Time max = 0;   // uniform, from 0
    Time mean = 0;  // normal
    Time deviation = 0;

    QUICGYM_FIELDS(Jitter, kind, max, mean, deviation)
};

// A token bucket: what exceeds the rate by more than the burst is dropped before the queue.
struct Policer {
    std::uint64_t rate_bits_per_second = 0;
    std::uint64_t burst_bytes = 0;

    QUICGYM_FIELDS(Policer, rate_bits_per_second, burst_bytes)
};

// A token bucket before the transmitter: a transmission starts when there are tokens for the packet, which
// waits in the queue until then.
struct Shaper {
    std::uint64_t rate_bits_per_second = 0;
    std::uint64_t burst_bytes = 0;

    QUICGYM_FIELDS(Shaper, rate_bits_per_second, burst_bytes)
};

inline constexpr std::uint64_t kOpportunityBytes = 1500;  // of a mahimahi trace

// One direction of the bottleneck.
struct Link {
    std::uint64_t rate_bits_per_second = 0;
    Time delay = 0;
    std::optional<Policer> policer;
    std::uint64_t queue_limit = 0;  // waiting packets or bytes; the one on the wire not counted
    QueueUnit queue_unit = QueueUnit::packets;
    std::string queue_discipline = kDropTail;  // others: sim/net/queues/
    bool ecn_marking = false;                  // the queue discipline marks instead of dropping
    Time ce_threshold =
        0;  // an L4S packet is marked where it has waited longer, and never dropped early; 0: none
    LossModel loss;
    std::vector<LossStep> loss_schedule;  // ascending; for transmissions that start from `at` on
    std::optional<Shaper> shaper;         // not with a trace
    // Ascending; each rate holds for transmissions that start from `at` on; none starts at 0.
    std::vector<RateStep> rate_schedule;
    Time opens_every = 0;  // opens at its multiples until its queue is empty; 0: never closed
    std::vector<std::uint32_t> delivery_opportunities_ms;  // mahimahi trace; replaces the rate
    std::vector<DelayStep> delay_schedule;  // ascending; for transmissions that start from `at` on
    Jitter jitter;
    bool reordering = false;  // packets may overtake one another where the delay falls
    // Ascending; without a trace and the schedules of rate and delay, and not in a chain.
    std::vector<Reroute> reroutes;

    QUICGYM_FIELDS(Link, rate_bits_per_second, delay, policer, queue_limit, queue_unit, queue_discipline,
                   ecn_marking, ce_threshold, loss, loss_schedule, shaper, rate_schedule, opens_every,
                   delivery_opportunities_ms, delay_schedule, jitter, reordering, reroutes)
};

QUICGYM_ENUM(ApplicationKind, bulk, transfer, constant_rate, bursts, on_off, request_response, web_page,
             video, real_time_media)

// An object of a web page.
struct PageObject {
    std::uint64_t size_bytes = 0;
    std::vector<std::uint32_t> after;  // the objects that must be there before this one is asked for

    QUICGYM_FIELDS(PageObject, size_bytes, after)
};

// The data that the sending application writes: by itself, or when the receiving one asks for it
// (request_response, web_page and video). Rates count stream bytes on the application's side.
struct Application {
    ApplicationKind kind = ApplicationKind::bulk;
    std::uint64_t size_bytes = 0;                  // transfer
    std::uint64_t rate_bits_per_second = 0;        // constant_rate, bursts (base rate), on_off (rate when on)
    std::uint64_t burst_rate_bits_per_second = 0;  // bursts: added to the base rate during a burst
    Time burst_duration = 0;
    Time burst_period = 0;  // from start of burst to start of burst
    std::uint64_t burst_count = 0;
    bool burst_own_stream = false;  // over a second stream of the connection; goodput counts the first
    Time on_duration = 0;           // on_off
    Time off_duration = 0;
    std::uint64_t request_bytes = 0;  // of every request, at least 8
    std::vector<SizePoint> response_sizes;
    Time think_time = 0;                               // from a response to the next request
    std::vector<PageObject> objects;                   // web_page
    std::vector<std::uint64_t> rates_bits_per_second;  // video, real_time_media: ascending
    Time chunk_duration = 0;                           // of video
    Time reservoir = 0;                                // seconds of video in the buffer
    Time cushion = 0;
    Time max_buffer = 0;

    QUICGYM_FIELDS(Application, kind, size_bytes, rate_bits_per_second, burst_rate_bits_per_second,
                   burst_duration, burst_period, burst_count, burst_own_stream, on_duration, off_duration,
                   request_bytes, response_sizes, think_time, objects, rates_bits_per_second, chunk_duration,
                   reservoir, cushion, max_buffer)
};

QUICGYM_ENUM(Transport, quic, tcp)

// Which way a flow's data goes over the bottleneck; its acknowledgements go the other way.
QUICGYM_ENUM(DataDirection, forward, backward)

// Makes a controller from its parameters and the size of a full datagram.
using ControllerFactory = std::function<std::unique_ptr<Controller>(const ParameterValues& values,
                                                                    std::uint64_t max_datagram_bytes)>;

struct Flow {
    std::string name;
    Transport transport = Transport::quic;
    DataDirection direction = DataDirection::forward;
    std::string controller;  // quic: a catalogue name; tcp: "newreno", "cubic", "bbr", "vegas" of ns-3
    ParameterValues parameters;
    ControllerFactory controller_factory;  // quic: where there is one, in place of the catalogue's
    bool guard = false;  // around these: a floor under an agent that leaves its path empty (guard.hpp)
    bool safe_envelope = false;  // around all of that: bounds by what was delivered (envelope.hpp)
    Application application;
    Time start = 0;         // the first handshake packet leaves then
    Time start_jitter = 0;  // uniform in [0, start_jitter), drawn from the seed, is added to start
    Time stop = kNever;
    std::uint64_t access_rate_bits_per_second = 0;  // both ends, both directions
    Time access_delay = 0;                          // each end, one way
    Time extra_delay = 0;                           // added to the sender's access link in each direction
    std::uint64_t mtu_bytes = 0;  // IPv4, of both ends; larger packets go as fragments; 0: never
    // In a chain, the hops that the flow passes, counted from 1 from the senders' side. Data that goes
    // backward passes them from the last to the first.
    std::uint32_t first_hop = 1;
    std::uint32_t last_hop = 0;  // 0: the chain's last
    std::uint64_t max_datagram_bytes = 1200;
    std::uint64_t flow_control_window_bytes = 0;  // connection and stream alike
    std::uint64_t send_buffer_bytes = 1U << 20;   // unsent data that the transport takes
    bool ecn = false;
    // When its receiver acknowledges, in the terms of draft-ietf-quic-ack-frequency.
    std::uint64_t ack_eliciting_threshold = 1;  // ack-eliciting packets that go without an ACK
    Time max_ack_delay = 25 * kMillisecond;
    std::uint64_t reordering_threshold = 1;  // 0: a gap or reordering brings no ACK at once
    bool pace_initial_window = false;        // the first window is paced, too (RFC 9002 7.7)
    std::uint64_t offload_packets = 1;       // so many leave back to back, as segmentation offload sends them
    bool adaptive_reordering = true;    // packets that arrive late after all delay the detection of losses
    bool burst_retransmission = false;  // lost data leaves when it is found, whatever window and pacing say
    bool stale_rate_samples = false;    // delivery-rate samples may keep an older interval
    // Habits of the QUIC module for ns-3 (docs/papers/ebcc.md); 0 and false: RFC 9000 and RFC 9002.
    std::uint64_t window_update_bytes = 0;  // in order, after which MAX_DATA leaves; 0: half of the window
    std::uint64_t acks_for_max_data = 0;    // one of so many ACK frames comes with MAX_DATA; 0: none does
    bool acknowledges_alone = false;        // only packets without other frames count as acknowledgements
    Time probe_timeout = 0;                 // of both ends, in place of the one that the RTT gives
    bool losses_by_count = false;           // of packets alone: no detection of losses by time
    std::uint64_t segment_bytes = 0;        // a full packet as the controller counts it; 0: the datagram
    std::uint64_t uncounted_bytes = 0;      // of each datagram: not in flight

    // controller_factory is set by what it is made of.
    QUICGYM_FIELDS(Flow, name, transport, direction, controller, parameters, guard, safe_envelope,
                   application, start, start_jitter, stop, access_rate_bits_per_second, access_delay,
                   extra_delay, mtu_bytes, first_hop, last_hop, max_datagram_bytes, flow_control_window_bytes,
                   send_buffer_bytes, ecn, ack_eliciting_threshold, max_ack_delay, reordering_threshold,
                   pace_initial_window, offload_packets, adaptive_reordering, burst_retransmission,
                   stale_rate_samples, window_update_bytes, acks_for_max_data, acknowledges_alone,
                   probe_timeout, losses_by_count, segment_bytes, uncounted_bytes)
};

// Transfers that arrive as a Poisson process at one pair of hosts, each over a new connection.
struct ShortFlows {
    Flow flow;  // every connection; its application is a transfer. They arrive from start up to stop.
    double arrivals_per_second = 0.0;
    std::vector<SizePoint> sizes;

    QUICGYM_FIELDS(ShortFlows, flow, arrivals_per_second, sizes)
};

// A wireless LAN of 802.11n at 5 GHz with one spatial stream, in place of the bottleneck. Each
// flow's receiver is a separate station.
struct Wifi {
    std::uint32_t channel_width_mhz = 0;  // 20 or 40
    std::uint32_t mcs = 0;                // 0 to 7: modulation and coding of every data frame
    bool short_guard_interval = false;
    std::uint64_t max_ampdu_bytes = 0;  // 0: no aggregation
    double distance_metres = 0.0;       // from the access point to every station
    double path_loss_exponent = 0.0;
    std::uint64_t queue_packets = 0;  // of the access point and of each station
    Time queue_max_delay = 0;         // what waits longer is dropped
    Link wired;  // from the senders' side to the access point, and back; rate, delay and queue only

    QUICGYM_FIELDS(Wifi, channel_width_mhz, mcs, short_guard_interval, max_ampdu_bytes, distance_metres,
                   path_loss_exponent, queue_packets, queue_max_delay, wired)
};

struct Scenario {
    Link bottleneck;  // sender side to receiver side
    Link reverse;     // receiver side to sender side
    // Further bottlenecks in a row, and the way back over each, both in order from the senders' side.
    std::vector<Link> chain;
    std::vector<Link> reverse_chain;
    std::optional<Wifi> wifi;  // there: in place of both links and the receivers' access links
    std::vector<Flow> flows;
    std::vector<ShortFlows> short_flows;
    Time trace_interval = 0;         // 0: no time series
    bool record_deliveries = false;  // keep (flow, packet number, time) of every delivered packet
    // Empty: none.
    std::string pcap_prefix;
    std::string flow_monitor_path;

    QUICGYM_FIELDS(Scenario, bottleneck, reverse, chain, reverse_chain, wifi, flows, short_flows,
                   trace_interval, record_deliveries, pcap_prefix, flow_monitor_path)
};

// A pair of hosts with what its sender's flows are, and how a message calls it: "short_flows.0".
struct HostPair {
    const Flow* flow;
    std::string field;
};

// The pairs in the order in which engines number them: of the flows, then of the entries of short flows.
std::vector<HostPair> host_pairs(const Scenario& scenario);

std::uint64_t largest_datagram_bytes(const Scenario& scenario);

// Hops are counted from 0 here, from the senders' side; the first is the bottleneck.
inline std::size_t hop_count(const Scenario& scenario) {
    return 1 + scenario.chain.size();
}

inline const Link& link_of_hop(const Scenario& scenario, DataDirection direction, std::size_t hop) {
    if (direction == DataDirection::forward) return hop == 0 ? scenario.bottleneck : scenario.chain[hop - 1];
    return hop == 0 ? scenario.reverse : scenario.reverse_chain[hop - 1];
}

// Whether packets may overtake one another on the link, or between its paths.
inline bool may_overtake(const Link& link) {
    return link.reordering || !link.reroutes.empty();
}

// The path that packets take after so many reroutes (at least one), as a separate link.
inline Link path_of(const Link& link, std::size_t reroutes) {
    Link path = link;
    path.reroutes.clear();
    path.rate_bits_per_second = link.reroutes[reroutes - 1].rate_bits_per_second;
    path.delay = link.reroutes[reroutes - 1].delay;
    return path;
}

// The name of a hop in messages, such as "chain.0.reverse".
inline std::string name_of_hop(DataDirection direction, std::size_t hop) {
    const bool is_forward = direction == DataDirection::forward;
    if (hop == 0) return is_forward ? "bottleneck" : "reverse";
    return "chain." + std::to_string(hop - 1) + (is_forward ? "" : ".reverse");
}

inline constexpr std::size_t kMaxHops = 16;

// The stream of random numbers for a hop's queue discipline, which is the same in both engines. Each path
// that packets take after a reroute has its own.
inline std::uint64_t queue_stream(DataDirection direction, std::size_t hop, std::size_t reroutes = 0) {
    return 2 * (hop + kMaxHops * reroutes) + (direction == DataDirection::forward ? 0 : 1);
}

struct HopRange {
    std::size_t first;
    std::size_t last;

    std::size_t size() const { return last - first + 1; }
    bool contains(std::size_t hop) const { return first <= hop && hop <= last; }
};

// The hops that a flow passes, in a scenario that check_chain accepts.
inline HopRange hops_of(const Scenario& scenario, const Flow& flow) {
    return {flow.first_hop - 1, (flow.last_hop == 0 ? hop_count(scenario) : flow.last_hop) - 1};
}

// An error in a scenario: the field as a scenario file names it, the fact, and the remedy.
struct Problem {
    std::string field;
    std::string text;
    std::string remedy;
};

// Throws std::invalid_argument where there is a problem; `prefix` stands before its field.
void refuse(const std::optional<Problem>& problem, const std::string& prefix = "");

// Why no engine simulates the scenario's chain, or where a flow leaves it.
std::optional<Problem> chain_problem(const Scenario& scenario);

// Throws std::invalid_argument for it.
void check_chain(const Scenario& scenario);

// The moment at which a flow starts: its start plus its jitter, drawn from the seed.
inline Time flow_start(const Scenario& scenario, std::size_t flow, std::uint64_t seed) {
    const Flow& chosen = scenario.flows[flow];
    if (chosen.start_jitter == 0) return chosen.start;
    Random random(seed, RandomPurpose::flow_start, flow);
    return chosen.start + static_cast<Time>(random.below(static_cast<std::uint64_t>(chosen.start_jitter)));
}

}  // namespace quicgym
