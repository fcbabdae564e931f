// One simulation as a decision process: actions in, then a decision interval, then what came of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/base/value_pointer.hpp"
#include "sim/environment/action_space.hpp"
#include "sim/environment/capacity.hpp"
#include "sim/environment/fair_share.hpp"
#include "sim/environment/observation.hpp"
#include "sim/environment/reward.hpp"
#include "sim/simulation.hpp"

namespace quicgym::environment {

// What all episodes of a batch have in common.
struct Settings {
    const ActionSpace* action_space;
    ObservationLayout observation = ObservationLayout::frames;
    std::size_t history_length = 4;
    bool clips_actions = false;  // to [-1, 1], instead of refusing others
    Time decision_interval = 100 * kMillisecond;
    double decision_interval_rtts = 0.0;  // above 0: in place of decision_interval
    Time reward_interval = kNever;        // what a step reports is the mean over intervals this long
    RewardSettings reward;
    bool observes_preference = false;  // observations end with the episode's preference
    bool reward_per_flow = false;      // each agent earns what its own flow achieves

    bool operator==(const Settings&) const = default;
};

// One episode.
struct Plan {
    std::uint64_t seed = 0;
    std::vector<std::size_t> agents;  // their flows
    bool ignores_actions = false;     // the flows' controllers are left alone
    Time end = 0;                     // of the scenario
    Time length = kNever;             // from the episode's beginning
    Preference preference{};
};

// What is known beside the observation, the network's secrets included: one row of numbers per agent. Columns
// about the interval are NaN when the episode begins, since there has been none.
struct InfoColumn {
    std::string_view name;
    std::string_view description;
};

inline constexpr std::array<InfoColumn, 19> kInfoColumns{{
    {"time_s", "simulated time"},
    {"throughput_mbps",
     "what reached the receivers in the interval, all flows and short flows, headers included"},
    {"capacity_mbps", "what the bottleneck could have sent in it; in a chain the sum over the hops"},
    {"throughput_share",
     "throughput / mean capacity over the planned episode; in a chain each flow counts at every hop that it "
     "passes"},
    {"loss_rate", "drops / (drops + received) in the network, all flows and short flows"},
    {"jain",
     "Jain's index over the active flows' throughputs, in a chain over throughput / max-min fair rate"},
    {"rtt_ms", "mean over the RTT samples of all flows; NaN before the first"},
    {"rtt_ratio", "mean of RTT sample / that flow's minimum; NaN before the first"},
    {"queue_packets", "waiting before the bottleneck now, in a chain before all hops"},
    {"queue_bytes", "the same in bytes"},
    {"active_flows", "flows that were running when the interval began"},
    {"active", "1 while the agent's flow is running, else 0"},
    {"flow_throughput_mbps", "of the agent's flow"},
    {"flow_loss_rate", "of the agent's flow"},
    {"flow_rtt_ms", "of the agent's flow; NaN before its first sample"},
    {"flow_window_bytes", "of the agent's flow now"},
    {"flow_pacing_rate_mbps", "of the agent's flow now"},
    {"flow_in_flight_bytes", "of the agent's flow now"},
    {"flow_access_queue_bytes",
     "waiting before the access link of the agent's host now; in a run over sockets 0"},
}};

inline constexpr std::size_t kActiveColumn = [] {
    std::size_t column = 0;
    while (kInfoColumns[column].name != "active") ++column;
    return column;
}();

struct Status {
    bool terminated = false;  // every agent's flow has ended
    bool truncated = false;   // the time is up
};

// A copy goes on as the original would, independently of it. Copying throws what Simulation::clone throws.
class Episode {
public:
    // Runs up to the moment at which the first agent's flow starts. Takes a simulation of the scenario.
    Episode(std::unique_ptr<Simulation> simulation, const Scenario& scenario, const Settings& settings,
            const Plan& plan);

    // One valid action per agent, action_space->size() numbers each. A flow that has not started begins with
    // its latest, unless actions are factors; those are ignored until it has, and all are once it has ended.
    // Must not be called once the episode is over.
    Status step(const float* actions);

    // Per agent: size() numbers, one number, kInfoColumns.size() numbers.
    void write_observations(float* out) const;
    void write_rewards(double* out) const;
    void write_info(double* out) const;

    const Simulation& simulation() const { return *simulation_; }
    const Settings& settings() const { return settings_; }
    std::size_t agent_count() const { return agents_.size(); }

    static std::size_t observation_size(const Settings& settings);

private:
    struct Agent {
        std::size_t flow;
        ValuePointer<Actuator> actuator;
        ValuePointer<Observer> observer;
    };

    // A flow, and what it did in the last interval.
    struct Follower {
        Time stop;
        bool goes_forward;  // over the bottleneck whose capacity is shared
        HopRange hops;
        FlowState state;
        bool was_active = false;  // when the interval began
        Outcome outcome;          // of the last interval
        MeanOutcome mean;         // of the last step
    };

    bool active(const Follower& flow) const;
    Time next_decision() const;
    void run_and_measure(Time until);
    void measure(Time from);
    void measure_flow(Follower& flow, const FlowState& now, double seconds);
    bool in_chain() const { return capacities_.size() > 1; }
    // Bytes per second that all hops together could have sent.
    double capacity_rate(Time from, Time to) const;
    void find_fair_rates();

    ValuePointer<Simulation> simulation_;
    Settings settings_;
    std::size_t observed_size_;  // of an observation without the action and the preference
    bool ignores_actions_;
    Preference preference_;
    std::vector<BottleneckCapacity> capacities_;  // of the hops
    std::vector<Follower> flows_;
    std::vector<HopRange> short_flow_hops_;
    std::vector<ShortFlowTotals> short_flows_;  // at the end of the last interval
    std::vector<Agent> agents_;
    Time end_;
    Outcome outcome_;             // of all flows, in the last interval
    MeanOutcome mean_;            // of all flows, in the last step
    double capacity_rate_ = 0.0;  // bytes per second in the last step
    std::uint64_t active_flows_ = 0;
    // Bytes per second, over the planned episode: what is carried is worth the same at any time, so that the
    // mean of the shares is all that was carried over all that could have been.
    std::vector<double> mean_hop_rates_;
    double mean_capacity_rate_ = 0.0;  // their sum
    // Of a chain: of the forward flows that were active when the last interval began.
    MaxMinFairness fairness_;
    std::vector<HopRange> active_hops_;
    std::vector<double> fair_rates_;
};

}  // namespace quicgym::environment
