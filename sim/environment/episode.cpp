#include "sim/environment/episode.hpp"

#include <algorithm>

namespace quicgym::environment {

namespace {

// When the first agent's flow starts, and when the episode's time is up.
Time begin_of(const Simulation& simulation, const Plan& plan) {
    Time start = kNever;
    for (const std::size_t flow : plan.agents) start = std::min(start, simulation.state(flow).start);
    return start;
}

Time end_of(Time begin, const Plan& plan) {
    return plan.length < plan.end - begin ? begin + plan.length : plan.end;
}

}  // namespace

Episode::Episode(std::unique_ptr<Simulation> simulation, const Scenario& scenario, const Settings& settings,
                 const Plan& plan)
    : simulation_(std::move(simulation)),
      settings_(settings),
      ignores_actions_(plan.ignores_actions),
      end_(end_of(begin_of(*simulation_, plan), plan)),
      meter_(*simulation_, scenario,
             {.begin = begin_of(*simulation_, plan),
              .end = end_,
              .marks = plan.marks,
              .records = settings.records}) {
    for (const std::size_t flow : plan.agents) {
        // Braces: clang before 16 does not initialise an aggregate by parentheses.
        agents_.push_back(Agent{flow, settings.action_space->make_actuator(*settings.action_space, flow),
                                settings.observation->make_observer(
                                    settings.history_length, scenario.flows.at(flow).max_datagram_bytes)});
        Agent& agent = agents_.back();
        agent.actuator->start(*simulation_);
        agent.observer->start(meter_.state(flow));
    }
}

std::size_t Episode::observation_size(const Settings& settings) {
    return environment::observation_size(*settings.observation, settings.history_length,
                                         *settings.action_space);
}

// In RTTs: of the agent with the shortest smoothed one, so that none waits longer than it asked for.
Time Episode::next_decision() const {
    Time shortest = 0;
    for (const Agent& agent : agents_) {
        const Time smoothed = meter_.state(agent.flow).sample.smoothed_rtt;
        if (smoothed > 0 && (shortest == 0 || smoothed < shortest)) shortest = smoothed;
    }
    const Time interval = settings_.decision_interval.after(shortest);
    const Time now = simulation_->now();
    return interval < end_ - now ? now + interval : end_;
}

Status Episode::step(const float* actions) {
    const OneThread::Use use(simulation_->one_thread());
    if (!ignores_actions_) {
        // A setting is what a flow begins with; a window is multiplied once it is in use.
        const bool is_setting = !settings_.action_space->is_relative;
        for (Agent& agent : agents_) {
            const bool may_begin = is_setting && simulation_->now() < meter_.state(agent.flow).start;
            if (meter_.active(agent.flow) || may_begin) {
                agent.actuator->apply(*simulation_, actions);
            }
            actions += settings_.action_space->size();
        }
    }
    meter_.run_until(*simulation_, next_decision(), settings_.reward_interval);
    Status status{.terminated = true, .truncated = simulation_->now() >= end_};
    for (Agent& agent : agents_) {
        agent.observer->update(meter_.state(agent.flow));
        status.terminated = status.terminated && simulation_->now() >= meter_.end(agent.flow);
    }
    // A flow that ends with the scenario has reached its own end first.
    status.truncated = status.truncated && !status.terminated;
    return status;
}

void Episode::write_observations(float* out) const {
    for (const Agent& agent : agents_) out = write_observation(*agent.observer, *agent.actuator, out);
}

void Episode::write_rewards(double* out) const {
    for (const Agent& agent : agents_) {
        const MeanOutcome& mean = settings_.reward_per_flow ? meter_.mean(agent.flow) : meter_.mean();
        *out++ = reward(settings_.reward, mean.value());
    }
}

void Episode::write_info(double* out) const {
    Reading reading(meter_, *simulation_);
    for (const Agent& agent : agents_) {
        reading.choose(agent.flow);
        out = write_flow_columns(reading, write_run_columns(reading, out));
    }
}

}  // namespace quicgym::environment
