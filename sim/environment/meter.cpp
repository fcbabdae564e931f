#include "sim/environment/meter.hpp"

#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

namespace quicgym::environment {

namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

double wire_bytes(double payload_bytes, double packets) {
    return payload_bytes + packets * static_cast<double>(kLinkBytes);
}

double to_mbps(double bytes_per_second) {
    return bytes_per_second * 8e-6;
}

// Jain, Chiu and Hawe, DEC-TR-301, 1984.
class JainIndex {
public:
    void add(double value) {
        sum_ += value;
        squares_ += value * value;
        ++count_;
    }
    double value() const {
        return squares_ > 0.0 ? sum_ * sum_ / (static_cast<double>(count_) * squares_) : 1.0;
    }

private:
    double sum_ = 0.0;
    double squares_ = 0.0;
    std::uint64_t count_ = 0;
};

// The value of a column about the last interval; when an episode begins there has been no interval yet.
double of_interval(const Reading& reading, double value) {
    return reading.meter.mean().has_outcomes() ? value : kNotMeasured;
}

}  // namespace

constexpr std::array<InfoColumn, 20> kInfoColumns{{
    {"time_s", "simulated time", [](const Reading& r) { return to_seconds(r.run.now()); }},
    {"step_s",
     "how long the step was that ends now, or the interval: rewards of steps count by it; 0 when an episode "
     "begins",
     [](const Reading& r) { return to_seconds(r.meter.length()); }},
    {"throughput_mbps",
     "what reached the receivers in the interval, all flows and short flows, headers included",
     [](const Reading& r) { return of_interval(r, to_mbps(r.total.throughput)); }},
    {"capacity_mbps", "what the bottleneck could have sent in it; in a chain the sum over the hops",
     [](const Reading& r) { return of_interval(r, to_mbps(r.meter.capacity_rate())); }},
    {"throughput_share",
     "throughput / mean capacity over the planned episode; in a chain each flow counts at every hop that it "
     "passes",
     [](const Reading& r) { return of_interval(r, r.total.throughput_share); }},
    {"loss_rate", "drops / (drops + received) in the network, all flows and short flows",
     [](const Reading& r) { return of_interval(r, r.total.loss_rate); }},
    {"jain",
     "Jain's index over the active flows' throughputs, in a chain over throughput / max-min fair rate",
     [](const Reading& r) { return of_interval(r, r.total.jain); }},
    {"rtt_ms",
     "mean over the RTT samples of all flows, of a longer decision over its intervals; NaN before the first",
     [](const Reading& r) { return r.meter.mean().rtt_seconds() * 1e3; }},
    {"rtt_ratio",
     "mean of RTT sample / that flow's minimum, of a longer decision over its intervals; NaN before the first",
     [](const Reading& r) { return r.meter.mean().rtt_ratio(); }},
    {"queue_packets", "waiting before the bottleneck now, in a chain before all hops",
     [](const Reading& r) { return static_cast<double>(r.queue.packets); }},
    {"queue_bytes", "the same in bytes", [](const Reading& r) { return static_cast<double>(r.queue.bytes); }},
    {"active_flows", "flows that were running when the interval began",
     [](const Reading& r) { return of_interval(r, static_cast<double>(r.meter.active_flows())); }},
    {"active", "1 while the agent's flow is running, else 0",
     [](const Reading& r) { return r.meter.active(r.flow) ? 1.0 : 0.0; }},
    {"flow_throughput_mbps", "of the agent's flow",
     [](const Reading& r) { return of_interval(r, to_mbps(r.own.throughput)); }},
    {"flow_loss_rate", "of the agent's flow",
     [](const Reading& r) { return of_interval(r, r.own.loss_rate); }},
    {"flow_rtt_ms", "of the agent's flow; NaN before its first sample",
     [](const Reading& r) { return r.meter.mean(r.flow).rtt_seconds() * 1e3; }},
    {"flow_window_bytes", "of the agent's flow now",
     [](const Reading& r) { return static_cast<double>(r.meter.state(r.flow).sample.window_bytes); }},
    {"flow_pacing_rate_mbps", "of the agent's flow now",
     [](const Reading& r) { return to_mbps(r.meter.state(r.flow).sample.pacing_rate); }},
    {"flow_in_flight_bytes", "of the agent's flow now",
     [](const Reading& r) { return static_cast<double>(r.meter.state(r.flow).sample.in_flight_bytes); }},
    {"flow_access_queue_bytes",
     "waiting before the access link of the agent's host now; in a run over sockets 0",
     [](const Reading& r) { return static_cast<double>(r.run.access_queue(r.flow).bytes); }},
}};
static_assert(kInfoColumns[kStepColumn].name == "step_s" && kInfoColumns[kActiveColumn].name == "active");

namespace {

// Without a loop, so that the compiler inlines the columns: it calls nothing through their pointers.
template <std::size_t kFirst, std::size_t... kPlaces>
double* write_columns(const Reading& reading, double* out, std::index_sequence<kPlaces...>) {
    ((*out++ = kInfoColumns[kFirst + kPlaces].value(reading)), ...);
    return out;
}

}  // namespace

double* write_run_columns(const Reading& reading, double* out) {
    return write_columns<0>(reading, out, std::make_index_sequence<kRunColumns>());
}

double* write_flow_columns(const Reading& reading, double* out) {
    constexpr std::size_t kCount = kInfoColumns.size() - kRunColumns;
    return write_columns<kRunColumns>(reading, out, std::make_index_sequence<kCount>());
}

Reading::Reading(const Meter& of_meter, const Watched& of_run)
    : meter(of_meter), run(of_run), total(of_meter.mean().value()) {
    for (std::size_t hop = 0; hop < run.hop_count(); ++hop) {
        const QueueSample at_hop = run.queue(hop);
        queue.packets += at_hop.packets;
        queue.bytes += at_hop.bytes;
    }
}

void Reading::choose(std::size_t of_flow) {
    flow = of_flow;
    own = meter.mean(flow).value();
}

Meter::Meter(Watched& run, const Scenario& scenario, Settings settings) : settings_(std::move(settings)) {
    const std::vector<Time>& marks = settings_.marks;
    if (!marks.empty() && dynamic_cast<Records*>(&run) == nullptr) {
        throw std::invalid_argument("marks need a simulation: a recorded run has no totals");
    }
    if (std::adjacent_find(marks.begin(), marks.end(), std::greater_equal<>()) != marks.end() ||
        (!marks.empty() && marks.front() < run.now())) {
        throw std::invalid_argument("marks must rise, and none may have passed");
    }
    for (std::size_t hop = 0; hop < hop_count(scenario); ++hop) {
        const BottleneckCapacity& capacity = capacities_.emplace_back(scenario, hop);
        const double seconds = to_seconds(settings_.end - settings_.begin);
        const double rate =
            seconds > 0.0 ? capacity.bytes_between(settings_.begin, settings_.end) / seconds : 0.0;
        mean_hop_rates_.push_back(rate);
        mean_capacity_rate_ += rate;
    }
    advance(run, settings_.begin);
    for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
        const Flow& flow = scenario.flows[i];
        flows_.push_back({.stop = flow.stop,
                          .goes_forward = flow.direction == DataDirection::forward,
                          .hops = hops_of(scenario, flow)});
        follow(flows_.back(), run.state(i), run.now());
    }
    for (std::size_t i = 0; i < run.short_flow_count(); ++i) {
        short_flows_.push_back(run.short_flow_totals(i));
        short_flow_hops_.push_back(hops_of(scenario, scenario.short_flows[i].flow));
    }
}

void Meter::run_until(Watched& run, Time until, Time interval) {
    mean_ = {};
    for (Follower& flow : flows_) flow.mean = {};
    const Time begin = run.now();
    Time now = begin;
    do {
        const Time from = now;
        now = interval < until - from ? from + interval : until;
        advance(run, now);
        measure(run, from);
        const double seconds = to_seconds(now - from);
        mean_.add(outcome_, seconds);
        for (Follower& flow : flows_) flow.mean.add(flow.outcome, seconds);
    } while (now < until);
    length_ = now - begin;
    if (interval < until - begin) capacity_rate_ = capacity_rate(begin, now);
}

void Meter::advance(Watched& run, Time until) {
    while (totals_.size() < settings_.marks.size() && settings_.marks[totals_.size()] <= until) {
        run.run_until(settings_.marks[totals_.size()]);
        Records& records = dynamic_cast<Records&>(run);
        std::vector<FlowTotals>& totals = totals_.emplace_back();
        for (std::size_t flow = 0; flow < run.flow_count(); ++flow) totals.push_back(records.totals(flow));
        std::vector<ShortFlowTotals>& of_short_flows = short_flow_totals_.emplace_back();
        for (std::size_t entry = 0; entry < run.short_flow_count(); ++entry)
            of_short_flows.push_back(run.short_flow_totals(entry));
        queue_occupancies_.push_back(records.queue_occupancy_seconds());
    }
    run.run_until(until);
}

void Meter::follow(Follower& flow, const FlowState& state, Time now) {
    flow.state = state;
    flow.active = state.start <= now && now < end_of(flow);
}

double Meter::capacity_rate(Time from, Time to) const {
    double bytes = 0.0;
    for (const BottleneckCapacity& capacity : capacities_) bytes += capacity.bytes_between(from, to);
    return bytes / to_seconds(to - from);
}

void Meter::find_fair_rates() {
    active_hops_.clear();
    for (const Follower& flow : flows_) {
        if (flow.goes_forward && flow.active) active_hops_.push_back(flow.hops);
    }
    fairness_.share(mean_hop_rates_, active_hops_, fair_rates_);
}

void Meter::measure_flow(Follower& flow, const FlowState& now, double seconds) {
    const FlowState& before = flow.state;
    const double packets = static_cast<double>(now.received_packets - before.received_packets);
    const double payload = static_cast<double>(now.sample.received_bytes - before.sample.received_bytes);
    const double drops = static_cast<double>(now.dropped_packets - before.dropped_packets);
    Outcome& outcome = flow.outcome;
    outcome.throughput = wire_bytes(payload, packets) / seconds;
    outcome.loss_rate = drops > 0.0 ? drops / (drops + packets) : 0.0;
    if (const std::uint64_t samples = now.rtt_samples - before.rtt_samples; samples > 0) {
        outcome.rtt_seconds = (now.rtt_sum_seconds - before.rtt_sum_seconds) / static_cast<double>(samples);
        outcome.rtt_ratio = outcome.rtt_seconds / to_seconds(now.min_rtt);
    }
}

void Meter::measure(const Watched& run, Time from) {
    const Time now = run.now();
    const double seconds = to_seconds(now - from);
    capacity_rate_ = capacity_rate(from, now);
    if (in_chain()) find_fair_rates();

    Outcome total;
    JainIndex jain;
    double carried = 0.0;             // over all hops
    double packets_per_second = 0.0;  // that arrived
    double drops_per_second = 0.0;
    double rtt_samples = 0.0;
    double rtt_sum = 0.0;
    double rtt_ratio_sum = 0.0;
    active_flows_ = 0;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
        Follower& flow = flows_[i];
        const FlowState state = run.state(i);
        measure_flow(flow, state, seconds);
        if (flow.goes_forward) {
            total.throughput += flow.outcome.throughput;
            carried += flow.outcome.throughput * static_cast<double>(flow.hops.size());
            packets_per_second +=
                static_cast<double>(state.received_packets - flow.state.received_packets) / seconds;
            drops_per_second +=
                static_cast<double>(state.dropped_packets - flow.state.dropped_packets) / seconds;
            const auto samples = static_cast<double>(state.rtt_samples - flow.state.rtt_samples);
            rtt_samples += samples;
            rtt_sum += samples * flow.outcome.rtt_seconds;
            rtt_ratio_sum += samples * flow.outcome.rtt_ratio;
        }
        flow.outcome.throughput_share = 0.0;
        if (flow.goes_forward && flow.active) {
            if (in_chain()) {
                const double fair_rate = fair_rates_[active_flows_];
                flow.outcome.throughput_share = fair_rate > 0.0 ? flow.outcome.throughput / fair_rate : 0.0;
                jain.add(flow.outcome.throughput_share);
            } else {
                jain.add(flow.outcome.throughput);
            }
            ++active_flows_;
        }
        follow(flow, state, now);
    }
    // Short flows count in what the link carries and drops. Fairness and RTTs are those of the flows: a
    // transfer of few packets has no share to be fair about.
    for (std::size_t i = 0; i < short_flows_.size(); ++i) {
        const ShortFlowTotals totals = run.short_flow_totals(i);
        const ShortFlowTotals& before = short_flows_[i];
        const auto packets_of = static_cast<double>(totals.received_packets - before.received_packets);
        const auto payload = static_cast<double>(totals.received_bytes - before.received_bytes);
        const double throughput = wire_bytes(payload, packets_of) / seconds;
        total.throughput += throughput;
        carried += throughput * static_cast<double>(short_flow_hops_[i].size());
        packets_per_second += packets_of / seconds;
        drops_per_second += static_cast<double>(totals.dropped_packets - before.dropped_packets) / seconds;
        short_flows_[i] = totals;
    }
    const auto share = [this](double throughput) {
        return mean_capacity_rate_ > 0.0 ? throughput / mean_capacity_rate_ : 0.0;
    };
    total.throughput_share = share(carried);
    const double packets = packets_per_second + drops_per_second;
    total.loss_rate = packets > 0.0 ? drops_per_second / packets : 0.0;
    total.jain = jain.value();
    total.rtt_seconds = rtt_samples > 0.0 ? rtt_sum / rtt_samples : outcome_.rtt_seconds;
    total.rtt_ratio = rtt_samples > 0.0 ? rtt_ratio_sum / rtt_samples : outcome_.rtt_ratio;
    total.power = total.throughput_share / total.rtt_ratio;
    outcome_ = total;

    // A flow's own share is measured against an equal part of the link, in a chain against its max-min fair
    // rate; with one link the mean over the flows is then what they have in common.
    for (Follower& flow : flows_) {
        if (!in_chain()) {
            flow.outcome.throughput_share = share(flow.outcome.throughput) *
                                            static_cast<double>(std::max<std::uint64_t>(1, active_flows_));
        }
        flow.outcome.jain = total.jain;
        flow.outcome.power = flow.outcome.throughput_share / flow.outcome.rtt_ratio;
    }
    if (!settings_.records) return;
    times_.push_back(now);
    for (const Follower& flow : flows_) received_bytes_.push_back(flow.state.sample.received_bytes);
}

}  // namespace quicgym::environment
