// sim/environment/recorded_run.hpp for Python: what a run that happened elsewhere earns.
#include "sim/environment/recorded_run.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/bindings/modules.hpp"
#include "sim/environment/episode.hpp"
#include "sim/scenario.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

using environment::Episode;
using environment::kInfoColumns;

template <class Row>
std::vector<std::vector<Row>> to_rows(const std::vector<nb::bytes>& given) {
    std::vector<std::vector<Row>> all;
    for (const nb::bytes& bytes : given) {
        if (bytes.size() % sizeof(Row) != 0) throw std::invalid_argument("rows have another size");
        std::vector<Row>& rows = all.emplace_back(bytes.size() / sizeof(Row));
        std::memcpy(rows.data(), bytes.c_str(), bytes.size());
    }
    return all;
}

nb::object to_array(std::vector<double> values, const std::vector<std::size_t>& shape) {
    auto kept = std::make_unique<std::vector<double>>(std::move(values));
    double* const data = kept->data();
    nb::capsule owner(kept.release(), [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, double>(data, shape.size(), shape.data(), owner));
}

nb::tuple earn(const Scenario& scenario, Time interval, const std::vector<nb::bytes>& flows,
               const std::vector<nb::bytes>& queues, const environment::Settings& settings,
               const environment::Plan& plan) {
    if (flows.size() != scenario.flows.size() || plan.agents.empty())
        throw std::invalid_argument("each flow needs rows, and one an agent");
    Episode episode(std::make_unique<environment::RecordedRun>(interval, to_rows<FlowState>(flows),
                                                               to_rows<QueueSample>(queues)),
                    scenario, settings, plan);
    const Time begin = episode.simulation().now();
    std::vector<double> rewards;
    std::vector<double> columns;
    std::vector<double> reward(episode.agent_count());
    std::vector<double> info(episode.agent_count() * kInfoColumns.size());
    for (environment::Status status; !status.terminated && !status.truncated;) {
        status = episode.step(nullptr);
        episode.write_rewards(reward.data());
        episode.write_info(info.data());
        rewards.push_back(reward.front());
        columns.insert(columns.end(), info.begin(),
                       info.begin() + static_cast<std::ptrdiff_t>(kInfoColumns.size()));
    }
    const std::size_t steps = rewards.size();
    return nb::make_tuple(begin, to_array(std::move(rewards), {steps}),
                          to_array(std::move(columns), {steps, kInfoColumns.size()}));
}

}  // namespace

void bind_recorded_run(nb::module_& module) {
    module.def(
        "earn", &earn, nb::arg("scenario"), nb::arg("interval"), nb::arg("flows"), nb::arg("queues"),
        nb::arg("settings"), nb::arg("plan"),
        "Time in ns at which the episode begins, and of each decision the first agent's reward and info. "
        "Rows are FlowState and QueueSample.");
}

}  // namespace quicgym::bindings
