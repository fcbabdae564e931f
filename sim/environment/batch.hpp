// Many episodes side by side, over a pool of threads: actions and results are arrays with a row per agent.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/one_thread.hpp"
#include "sim/environment/episode.hpp"
#include "sim/environment/worker_pool.hpp"

namespace quicgym::environment {

using SimulationFactory =
    std::function<std::unique_ptr<Simulation>(const Scenario& scenario, std::uint64_t seed)>;

// Allocated once; row = simulation * agents per simulation + agent. Rows of an episode that has fewer
// agents are 0, their info is NaN but for `active`.
struct Buffers {
    Buffers(std::size_t simulations, std::size_t rows, std::size_t action_size, std::size_t observation_size);

    std::vector<float> actions;
    std::vector<float> observations;
    std::vector<double> rewards;
    std::vector<double> info;
    // Per simulation. Not std::vector<bool>, whose elements share bytes between threads.
    std::vector<std::uint8_t> selected;  // which simulations step() moves on
    std::vector<std::uint8_t> terminations;
    std::vector<std::uint8_t> truncations;
};

class Batch {
public:
    Batch(SimulationFactory factory, const Settings& settings, std::size_t simulations,
          std::size_t agents_per_simulation, std::size_t threads);

    // Begins new episodes: simulation indices[i] with scenarios[i] and plans[i]. Writes their rows of
    // observations, rewards (0) and info. Throws what building a simulation throws; that simulation then
    // has no episode, the others have.
    void reset(const std::vector<std::size_t>& indices, const std::vector<const Scenario*>& scenarios,
               const std::vector<Plan>& plans);

    // One decision interval for every selected simulation. Throws std::invalid_argument for an action that
    // is not valid, and std::logic_error for a simulation without a running episode;
    // nothing has moved then. What a simulation throws ends its episode; the others finish the step.
    void step();

    // Copies of the episodes of these simulations, and these copies' copies in the simulations' places: the
    // same episode may be put back any number of times. Throws std::logic_error where there is no episode,
    // std::invalid_argument for an episode under other settings, and what copying throws; nothing has changed
    // then.
    std::vector<std::unique_ptr<Episode>> clone(const std::vector<std::size_t>& indices);
    void restore(const std::vector<std::size_t>& indices, const std::vector<const Episode*>& episodes);

    // The first simulation that failed in the last reset() or step(); none where nothing has moved.
    std::optional<std::size_t> failed() const { return failed_; }

    // Throws std::logic_error where there is no episode.
    const Episode& episode(std::size_t simulation) const;
    // Ends the episode and frees its simulation.
    void close(std::size_t simulation) { episodes_.at(simulation).reset(); }

    Buffers& buffers() { return buffers_; }
    // See Simulation::one_thread.
    OneThread& one_thread() const { return one_thread_; }

    std::size_t action_size() const { return settings_.action_space->size(); }
    std::size_t observation_size() const { return observation_size_; }

private:
    void check_actions();
    void clear_rows(std::size_t simulation);
    void write_state(std::size_t simulation);
    std::vector<std::unique_ptr<Episode>> copies_of(const std::vector<const Episode*>& episodes);
    // Runs task(i) for each i below `count`; then throws the first exception, of the simulation that
    // index_of(i) names.
    template <class Task, class IndexOf>
    void run(std::size_t count, Task task, IndexOf index_of);

    SimulationFactory factory_;
    Settings settings_;
    std::size_t observation_size_;
    std::size_t agents_per_simulation_;
    std::vector<std::unique_ptr<Episode>> episodes_;
    std::vector<std::exception_ptr> errors_;
    std::optional<std::size_t> failed_;
    Buffers buffers_;
    mutable OneThread one_thread_;
    WorkerPool pool_;
};

}  // namespace quicgym::environment
