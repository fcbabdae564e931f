// One simulation as a decision process: actions in, then a decision interval, then what came of it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/value_pointer.hpp"
#include "sim/environment/action_space.hpp"
#include "sim/environment/decision.hpp"
#include "sim/environment/meter.hpp"
#include "sim/environment/observation.hpp"
#include "sim/environment/reward.hpp"
#include "sim/simulation.hpp"

namespace quicgym::environment {

// The settings that all episodes of a batch share.
struct Settings {
    const ActionSpace* action_space;
    const ObservationLayout* observation;
    std::size_t history_length = 4;
    bool clips_actions = false;  // to [-1, 1], instead of refusing others
    DecisionInterval decision_interval{};
    Time reward_interval = kNever;  // what a step reports is the mean over intervals this long
    RewardSettings reward{};
    bool reward_per_flow = false;  // each agent earns what its own flow achieves
    bool records = false;          // as in Meter::Settings

    bool operator==(const Settings&) const = default;
};

// One episode.
struct Plan {
    std::uint64_t seed = 0;
    std::vector<std::size_t> agents;  // their flows
    bool ignores_actions = false;     // the flows' controllers are left alone
    Time end = 0;                     // of the scenario
    Time length = kNever;             // from the episode's beginning
    std::vector<Time> marks{};        // as in Meter::Settings
};

struct Status {
    bool terminated = false;  // every agent's flow has ended
    bool truncated = false;   // the time is up
};

// A copy continues like the original, independently of it. Copying throws what Simulation::clone throws.
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

    const std::shared_ptr<Simulation>& simulation() const { return simulation_; }
    const Meter& meter() const { return meter_; }
    const Settings& settings() const { return settings_; }
    std::size_t agent_count() const { return agents_.size(); }

    static std::size_t observation_size(const Settings& settings);

private:
    struct Agent {
        std::size_t flow;
        ValuePointer<Actuator> actuator;
        ValuePointer<Observer> observer;
    };

    Time next_decision() const;

    SharedValuePointer<Simulation> simulation_;  // shared with Python
    Settings settings_;
    bool ignores_actions_;
    Time end_;
    Meter meter_;
    std::vector<Agent> agents_;
};

}  // namespace quicgym::environment
