#include "sim/environment/batch.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

namespace quicgym::environment {

Buffers::Buffers(std::size_t simulations, std::size_t rows, std::size_t action_size,
                 std::size_t observation_size)
    : actions(rows * action_size),
      observations(rows * observation_size),
      rewards(rows),
      info(rows * kInfoColumns.size()),
      selected(simulations, 1),
      terminations(simulations),
      truncations(simulations) {}

Batch::Batch(SimulationFactory factory, const Settings& settings, std::size_t simulations,
             std::size_t agents_per_simulation, std::size_t threads)
    : factory_(std::move(factory)),
      settings_(settings),
      observation_size_(Episode::observation_size(settings)),
      agents_per_simulation_(agents_per_simulation),
      episodes_(simulations),
      errors_(simulations),
      buffers_(simulations, simulations * agents_per_simulation, action_size(), observation_size()),
      pool_(threads) {}

template <class Task, class IndexOf>
void Batch::run(std::size_t count, Task task, IndexOf index_of) {
    pool_.run(count, [&](std::size_t i) {
        try {
            task(i);
        } catch (...) {
            errors_[index_of(i)] = std::current_exception();
            episodes_[index_of(i)].reset();
        }
    });
    std::exception_ptr first;
    for (std::size_t simulation = 0; simulation < errors_.size(); ++simulation) {
        if (!errors_[simulation]) continue;
        if (!first) {
            first = errors_[simulation];
            failed_ = simulation;
        }
        errors_[simulation] = nullptr;
    }
    if (first) std::rethrow_exception(first);
}

void Batch::reset(const std::vector<std::size_t>& indices, const std::vector<const Scenario*>& scenarios,
                  const std::vector<Plan>& plans) {
    failed_.reset();
    if (scenarios.size() != indices.size() || plans.size() != indices.size()) {
        throw std::invalid_argument("reset: indices, scenarios and plans differ in length");
    }
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] >= episodes_.size() || plans[i].agents.size() > agents_per_simulation_) {
            throw std::invalid_argument("reset: simulation " + std::to_string(indices[i]) + " with " +
                                        std::to_string(plans[i].agents.size()) + " agents, in a batch of " +
                                        std::to_string(episodes_.size()) + " with at most " +
                                        std::to_string(agents_per_simulation_));
        }
    }
    const auto index_of = [&](std::size_t i) { return indices[i]; };
    const auto begin = [&](std::size_t i) {
        // First, because ns-3 allows no two simulations at a time.
        episodes_[indices[i]].reset();
        episodes_[indices[i]] = std::make_unique<Episode>(factory_(*scenarios[i], plans[i].seed),
                                                          *scenarios[i], settings_, plans[i]);
        clear_rows(indices[i]);
        write_state(indices[i]);
        buffers_.terminations[indices[i]] = buffers_.truncations[indices[i]] = 0;
    };
    run(indices.size(), begin, index_of);
}

void Batch::step() {
    failed_.reset();
    check_actions();
    const auto move_on = [&](std::size_t simulation) {
        if (buffers_.selected[simulation] == 0) return;
        const std::size_t row = simulation * agents_per_simulation_;
        const Status status = episodes_[simulation]->step(buffers_.actions.data() + row * action_size());
        write_state(simulation);
        episodes_[simulation]->write_rewards(buffers_.rewards.data() + row);
        buffers_.terminations[simulation] = status.terminated;
        buffers_.truncations[simulation] = status.truncated;
    };
    run(episodes_.size(), move_on, [](std::size_t simulation) { return simulation; });
}

std::vector<std::unique_ptr<Episode>> Batch::copies_of(const std::vector<const Episode*>& episodes) {
    std::vector<std::unique_ptr<Episode>> copies(episodes.size());
    std::vector<std::exception_ptr> errors(episodes.size());
    pool_.run(episodes.size(), [&](std::size_t i) {
        try {
            copies[i] = std::make_unique<Episode>(*episodes[i]);
        } catch (...) {
            errors[i] = std::current_exception();
        }
    });
    for (const std::exception_ptr& error : errors) {
        if (error) std::rethrow_exception(error);
    }
    return copies;
}

std::vector<std::unique_ptr<Episode>> Batch::clone(const std::vector<std::size_t>& indices) {
    std::vector<const Episode*> episodes;
    for (const std::size_t simulation : indices) episodes.push_back(&episode(simulation));
    return copies_of(episodes);
}

void Batch::restore(const std::vector<std::size_t>& indices, const std::vector<const Episode*>& episodes) {
    if (indices.size() != episodes.size()) {
        throw std::invalid_argument("restore: indices and episodes differ in length");
    }
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] >= episodes_.size() || !(episodes[i]->settings() == settings_) ||
            episodes[i]->agent_count() > agents_per_simulation_) {
            throw std::invalid_argument("restore: simulation " + std::to_string(indices[i]) +
                                        " is not one of this batch, or the episode is of a batch with other "
                                        "settings");
        }
    }
    auto copies = copies_of(episodes);
    for (std::size_t i = 0; i < indices.size(); ++i) episodes_[indices[i]] = std::move(copies[i]);
}

void Batch::check_actions() {
    for (std::size_t simulation = 0; simulation < episodes_.size(); ++simulation) {
        if (buffers_.selected[simulation] == 0) continue;
        const bool over = buffers_.terminations[simulation] != 0 || buffers_.truncations[simulation] != 0;
        if (!episodes_[simulation] || over) {
            throw std::logic_error("environment " + std::to_string(simulation) + " has no running episode" +
                                   (over ? ": the last one is over" : "") + "; reset it");
        }
    }
    for (std::size_t row = 0; row < episodes_.size() * agents_per_simulation_; ++row) {
        if (buffers_.selected[row / agents_per_simulation_] == 0) continue;
        const std::span<float> action(buffers_.actions.data() + row * action_size(), action_size());
        if (settings_.clips_actions) settings_.action_space->clip(action);
        settings_.action_space->check(row, action);
    }
}

void Batch::clear_rows(std::size_t simulation) {
    const std::size_t row = simulation * agents_per_simulation_;
    const auto fill = [&](auto& values, std::size_t per_row, auto value) {
        std::fill_n(values.data() + row * per_row, agents_per_simulation_ * per_row, value);
    };
    fill(buffers_.observations, observation_size(), 0.0F);
    fill(buffers_.rewards, 1, 0.0);
    fill(buffers_.info, kInfoColumns.size(), std::numeric_limits<double>::quiet_NaN());
    for (std::size_t i = row; i < row + agents_per_simulation_; ++i) {
        for (const std::size_t column : {kStepColumn, kActiveColumn}) {
            buffers_.info[i * kInfoColumns.size() + column] = 0.0;
        }
    }
}

void Batch::write_state(std::size_t simulation) {
    const std::size_t row = simulation * agents_per_simulation_;
    episodes_[simulation]->write_observations(buffers_.observations.data() + row * observation_size());
    episodes_[simulation]->write_info(buffers_.info.data() + row * kInfoColumns.size());
}

const Episode& Batch::episode(std::size_t simulation) const {
    const auto& episode = episodes_.at(simulation);
    if (!episode) {
        throw std::logic_error("environment " + std::to_string(simulation) +
                               " has no running episode; reset it");
    }
    return *episode;
}

}  // namespace quicgym::environment
