#include "sim/environment/episode.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quicgym::environment {

namespace {

constexpr Time kShortestInterval = kMillisecond;

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

}  // namespace

Episode::Episode(std::unique_ptr<Simulation> simulation, const Scenario& scenario, const Settings& settings,
                 const Plan& plan)
    : simulation_(std::move(simulation)),
      settings_(settings),
      observed_size_(environment::observation_size(settings.observation, settings.history_length)),
      ignores_actions_(plan.ignores_actions),
      preference_(plan.preference) {
    for (std::size_t hop = 0; hop < hop_count(scenario); ++hop) capacities_.emplace_back(scenario, hop);
    Time start = kNever;
    for (const std::size_t flow : plan.agents) {
        start = std::min(start, simulation_->state(flow).start);
        agents_.push_back({flow, settings.action_space->make_actuator(*settings.action_space, flow),
                           make_observer(settings.observation, settings.history_length,
                                         scenario.flows.at(flow).max_datagram_bytes)});
    }
    end_ = plan.length < plan.end - start ? start + plan.length : plan.end;
    for (const BottleneckCapacity& capacity : capacities_) {
        const double seconds = to_seconds(end_ - start);
        mean_hop_rates_.push_back(seconds > 0.0 ? capacity.bytes_between(start, end_) / seconds : 0.0);
        mean_capacity_rate_ += mean_hop_rates_.back();
    }
    simulation_->run_until(start);
    for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
        flows_.push_back({.stop = scenario.flows[i].stop,
                          .goes_forward = scenario.flows[i].direction == DataDirection::forward,
                          .hops = hops_of(scenario, scenario.flows[i]),
                          .state = simulation_->state(i),
                          .outcome = {}});
        flows_.back().was_active = active(flows_.back());
    }
    for (std::size_t i = 0; i < simulation_->short_flow_count(); ++i) {
        short_flows_.push_back(simulation_->short_flow_totals(i));
        short_flow_hops_.push_back(hops_of(scenario, scenario.short_flows[i].flow));
    }
    for (Agent& agent : agents_) {
        agent.actuator->start(*simulation_);
        agent.observer->start(flows_[agent.flow].state);
    }
}

std::size_t Episode::observation_size(const Settings& settings) {
    return environment::observation_size(settings.observation, settings.history_length) +
           settings.action_space->shown_size() + (settings.observes_preference ? kPreferenceTerms.size() : 0);
}

bool Episode::active(const Follower& flow) const {
    const Time now = simulation_->now();
    return flow.state.start <= now && now < std::min(flow.stop, flow.state.completion);
}

// In RTTs: of the agent with the shortest smoothed one, so that none waits longer than it asked for.
Time Episode::next_decision() const {
    Time interval = settings_.decision_interval;
    if (settings_.decision_interval_rtts > 0.0) {
        Time shortest = kNever;
        for (const Agent& agent : agents_) {
            const Time smoothed = flows_[agent.flow].state.sample.smoothed_rtt;
            if (smoothed > 0) shortest = std::min(shortest, smoothed);
        }
        const Time rtt = shortest == kNever ? kInitialRtt : shortest;
        interval = std::max(
            kShortestInterval,
            static_cast<Time>(std::llround(settings_.decision_interval_rtts * static_cast<double>(rtt))));
    }
    const Time now = simulation_->now();
    return interval < end_ - now ? now + interval : end_;
}

Status Episode::step(const float* actions) {
    if (!ignores_actions_) {
        // A setting is what a flow begins with; a window is multiplied once it is in use.
        const bool is_setting = !settings_.action_space->is_relative;
        for (Agent& agent : agents_) {
            const Follower& flow = flows_[agent.flow];
            if (active(flow) || (is_setting && simulation_->now() < flow.state.start)) {
                agent.actuator->apply(*simulation_, actions);
            }
            actions += settings_.action_space->size();
        }
    }
    run_and_measure(next_decision());
    Status status{.terminated = true, .truncated = simulation_->now() >= end_};
    for (Agent& agent : agents_) {
        const Follower& flow = flows_[agent.flow];
        agent.observer->update(flow.state, agent.actuator->gamma());
        status.terminated =
            status.terminated && simulation_->now() >= std::min(flow.stop, flow.state.completion);
    }
    // A flow that ends with the scenario has reached its own end first.
    status.truncated = status.truncated && !status.terminated;
    return status;
}

void Episode::run_and_measure(Time until) {
    mean_ = {};
    for (Follower& flow : flows_) flow.mean = {};
    const Time begin = simulation_->now();
    Time now = begin;
    do {
        const Time from = now;
        now = settings_.reward_interval < until - from ? from + settings_.reward_interval : until;
        simulation_->run_until(now);
        measure(from);
        const double seconds = to_seconds(now - from);
        mean_.add(outcome_, seconds);
        for (Follower& flow : flows_) flow.mean.add(flow.outcome, seconds);
    } while (now < until);
    if (settings_.reward_interval < until - begin) {
        capacity_rate_ = capacity_rate(begin, now);
    }
}

double Episode::capacity_rate(Time from, Time to) const {
    double bytes = 0.0;
    for (const BottleneckCapacity& capacity : capacities_) bytes += capacity.bytes_between(from, to);
    return bytes / to_seconds(to - from);
}

void Episode::find_fair_rates() {
    active_hops_.clear();
    for (const Follower& flow : flows_) {
        if (flow.goes_forward && flow.was_active) active_hops_.push_back(flow.hops);
    }
    fairness_.share(mean_hop_rates_, active_hops_, fair_rates_);
}

void Episode::measure_flow(Follower& flow, const FlowState& now, double seconds) {
    const FlowState& before = flow.state;
    const double packets = static_cast<double>(now.received_packets - before.received_packets);
    const double payload = static_cast<double>(now.sample.received_bytes - before.sample.received_bytes);
    const double drops = static_cast<double>(now.dropped_packets - before.dropped_packets);
    Outcome& outcome = flow.outcome;
    outcome.throughput = wire_bytes(payload, packets) / seconds;
    outcome.packets_per_second = packets / seconds;
    outcome.drops_per_second = drops / seconds;
    outcome.loss_rate = drops > 0.0 ? drops / (drops + packets) : 0.0;
    if (const std::uint64_t samples = now.rtt_samples - before.rtt_samples; samples > 0) {
        outcome.rtt_seconds = (now.rtt_sum_seconds - before.rtt_sum_seconds) / static_cast<double>(samples);
        outcome.rtt_ratio = outcome.rtt_seconds / to_seconds(now.min_rtt);
    }
    outcome.max_packets_per_second = std::max(outcome.max_packets_per_second, outcome.packets_per_second);
}

void Episode::measure(Time from) {
    const Time now = simulation_->now();
    const double seconds = to_seconds(now - from);
    capacity_rate_ = capacity_rate(from, now);
    if (in_chain()) find_fair_rates();

    Outcome total;
    JainIndex jain;
    double carried = 0.0;  // over all hops
    double rtt_samples = 0.0;
    double rtt_sum = 0.0;
    double rtt_ratio_sum = 0.0;
    active_flows_ = 0;
    for (std::size_t i = 0; i < flows_.size(); ++i) {
        Follower& flow = flows_[i];
        const FlowState state = simulation_->state(i);
        measure_flow(flow, state, seconds);
        if (flow.goes_forward) {
            total.throughput += flow.outcome.throughput;
            carried += flow.outcome.throughput * static_cast<double>(flow.hops.size());
            total.packets_per_second += flow.outcome.packets_per_second;
            total.drops_per_second += flow.outcome.drops_per_second;
            const auto samples = static_cast<double>(state.rtt_samples - flow.state.rtt_samples);
            rtt_samples += samples;
            rtt_sum += samples * flow.outcome.rtt_seconds;
            rtt_ratio_sum += samples * flow.outcome.rtt_ratio;
        }
        flow.outcome.throughput_share = 0.0;
        if (flow.goes_forward && flow.was_active) {
            if (in_chain()) {
                const double fair_rate = fair_rates_[active_flows_];
                flow.outcome.throughput_share = fair_rate > 0.0 ? flow.outcome.throughput / fair_rate : 0.0;
                jain.add(flow.outcome.throughput_share);
            } else {
                jain.add(flow.outcome.throughput);
            }
            ++active_flows_;
        }
        flow.state = state;
        flow.was_active = active(flow);
    }
    // Short flows count in what the link carries and drops. Fairness and RTTs are those of the flows: a
    // transfer of few packets has no share to be fair about.
    for (std::size_t i = 0; i < short_flows_.size(); ++i) {
        const ShortFlowTotals totals = simulation_->short_flow_totals(i);
        const ShortFlowTotals& before = short_flows_[i];
        const auto packets_of = static_cast<double>(totals.received_packets - before.received_packets);
        const auto payload = static_cast<double>(totals.received_bytes - before.received_bytes);
        const double throughput = wire_bytes(payload, packets_of) / seconds;
        total.throughput += throughput;
        carried += throughput * static_cast<double>(short_flow_hops_[i].size());
        total.packets_per_second += packets_of / seconds;
        total.drops_per_second +=
            static_cast<double>(totals.dropped_packets - before.dropped_packets) / seconds;
        short_flows_[i] = totals;
    }
    const auto share = [this](double throughput) {
        return mean_capacity_rate_ > 0.0 ? throughput / mean_capacity_rate_ : 0.0;
    };
    total.throughput_share = share(carried);
    const double packets = total.packets_per_second + total.drops_per_second;
    total.loss_rate = packets > 0.0 ? total.drops_per_second / packets : 0.0;
    total.jain = jain.value();
    total.rtt_seconds = rtt_samples > 0.0 ? rtt_sum / rtt_samples : outcome_.rtt_seconds;
    total.rtt_ratio = rtt_samples > 0.0 ? rtt_ratio_sum / rtt_samples : outcome_.rtt_ratio;
    total.max_packets_per_second = std::max(outcome_.max_packets_per_second, total.packets_per_second);
    outcome_ = total;

    // A flow's own share is measured against an equal part of the link, in a chain against its max-min fair
    // rate; with one link the mean over the flows is then what they have in common.
    for (Follower& flow : flows_) {
        if (!in_chain()) {
            flow.outcome.throughput_share = share(flow.outcome.throughput) *
                                            static_cast<double>(std::max<std::uint64_t>(1, active_flows_));
        }
        flow.outcome.jain = total.jain;
    }
}

void Episode::write_observations(float* out) const {
    for (const Agent& agent : agents_) {
        agent.observer->write(out);
        out += observed_size_;
        const std::vector<float>& shown = agent.actuator->shown();
        out = std::copy(shown.begin(), shown.end(), out);
        if (!settings_.observes_preference) continue;
        for (const double weight : preference_) *out++ = static_cast<float>(weight);
    }
}

void Episode::write_rewards(double* out) const {
    for (const Agent& agent : agents_) {
        const MeanOutcome& mean = settings_.reward_per_flow ? flows_[agent.flow].mean : mean_;
        *out++ = reward(settings_.reward, preference_, mean.value());
    }
}

void Episode::write_info(double* out) const {
    QueueSample queue{};
    for (std::size_t hop = 0; hop < simulation_->hop_count(); ++hop) {
        const QueueSample at_hop = simulation_->queue(hop);
        queue.packets += at_hop.packets;
        queue.bytes += at_hop.bytes;
    }
    constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
    const auto of_interval = [this](double value) { return mean_.has_outcomes() ? value : kNotMeasured; };
    const Outcome total = mean_.value();
    for (const Agent& agent : agents_) {
        const Follower& flow = flows_[agent.flow];
        const Outcome own = flow.mean.value();
        const double values[kInfoColumns.size()] = {
            to_seconds(simulation_->now()),
            of_interval(to_mbps(total.throughput)),
            of_interval(to_mbps(capacity_rate_)),
            of_interval(total.throughput_share),
            of_interval(total.loss_rate),
            of_interval(total.jain),
            mean_.rtt_seconds() * 1e3,
            mean_.has_rtt() ? total.rtt_ratio : kNotMeasured,
            static_cast<double>(queue.packets),
            static_cast<double>(queue.bytes),
            of_interval(static_cast<double>(active_flows_)),
            active(flow) ? 1.0 : 0.0,
            of_interval(to_mbps(own.throughput)),
            of_interval(own.loss_rate),
            flow.mean.rtt_seconds() * 1e3,
            static_cast<double>(flow.state.sample.window_bytes),
            to_mbps(flow.state.sample.pacing_rate),
            static_cast<double>(flow.state.sample.in_flight_bytes),
            static_cast<double>(simulation_->access_queue(agent.flow).bytes),
        };
        out = std::copy(std::begin(values), std::end(values), out);
    }
}

}  // namespace quicgym::environment
