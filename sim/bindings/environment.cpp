// sim/environment for Python: settings, tables of names, and the batch with its arrays.
#include "sim/bindings/environment.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "controllers/parameter_scale.hpp"
#include "controllers/parameters.hpp"
#include "sim/bindings/arrays.hpp"
#include "sim/bindings/modules.hpp"
#include "sim/bindings/simulation.hpp"
#include "sim/environment/environments.hpp"
#include "sim/environment/observation.hpp"

namespace quicgym::bindings {

namespace {

using namespace environment;

// A view of one of the batch's buffers, which lives as long as the batch.
template <class Element>
using Array = nb::ndarray<nb::numpy, Element, nb::c_contig>;

template <class Element>
Array<Element> rows(std::vector<Element>& buffer, std::size_t columns) {
    return Array<Element>(buffer.data(), {buffer.size() / columns, columns});
}

Array<bool> flags(std::vector<std::uint8_t>& buffer) {
    static_assert(sizeof(bool) == sizeof(std::uint8_t));
    return Array<bool>(buffer.data(), {buffer.size()});
}

const ParameterSpecification& find_parameter(const std::string& controller, const std::string& name) {
    std::vector<std::string> known;
    for (const ParameterSpecification& parameter : find_controller(controller).parameters) {
        if (parameter.name == name) return parameter;
        known.push_back(parameter.name);
    }
    throw_unknown_parameter(controller, name, known);
}

void bind_tables(nb::module_& module) {
    module.def(
        "observation_layouts",
        [] {
            std::vector<std::string_view> names;
            for (const ObservationLayout& layout : observation_layouts()) names.push_back(layout.name);
            return names;
        },
        "The names of the layouts.");
    nb::dict environments;
    for (const Environment& environment : kEnvironments) {
        nb::dict attributes;
        attributes["id"] = environment.id;
        attributes["action_space_name"] = environment.action_space;
        attributes["controller"] = environment.controller;
        attributes["observations"] = environment.observations;
        environments[nb::cast(environment.name)] = attributes;
    }
    module.attr("ENVIRONMENTS") = environments;
    module.def(
        "observation_elements",
        [](const std::string& layout, std::size_t history_length) {
            nb::list result;
            for (const Element& element : find_observation_layout(layout).elements(history_length)) {
                result.append(nb::make_tuple(element.name, element.minimum, element.maximum));
            }
            return result;
        },
        nb::arg("layout"), nb::arg("history_length"),
        "Name, minimum and maximum of each element of an observation, without those of the action. ValueError "
        "lists the layouts.");
    nb::list columns;
    for (const InfoColumn& column : kInfoColumns) {
        columns.append(nb::make_tuple(column.name, column.description));
    }
    module.attr("INFO_COLUMNS") = columns;
    nb::dict rewards;
    for (const RewardName& reward : kRewardNames) {
        rewards[nb::cast(reward.name)] = nb::cast(reward.kind);
    }
    module.attr("REWARDS") = rewards;
    module.def(
        "value_at",
        [](const std::string& controller, const std::string& parameter, double coordinate) {
            return value_at(find_parameter(controller, parameter), coordinate);
        },
        nb::arg("controller"), nb::arg("parameter"), nb::arg("coordinate"),
        "The value of a parameter of a controller of the catalogue at a coordinate from -1 to 1.");
    module.def(
        "coordinate_of",
        [](const std::string& controller, const std::string& parameter, double value) {
            return coordinate_of(find_parameter(controller, parameter), value);
        },
        nb::arg("controller"), nb::arg("parameter"), nb::arg("value"),
        "The coordinate of a value within the parameter's range.");
}

void check_mapped(const ActionSpace& space) {
    if (space.decode) return;
    throw std::invalid_argument("the coordinates of '" + space.name + "' do not stand for parameters");
}

void bind_action_spaces(nb::module_& module) {
    nb::class_<ActionSpace>(module, "ActionSpace")
        .def_ro("name", &ActionSpace::name)
        .def_ro("coordinates", &ActionSpace::coordinates)
        .def_ro("choices", &ActionSpace::choices)
        .def_ro("is_relative", &ActionSpace::is_relative)
        .def_ro("fixed", &ActionSpace::fixed,
                "The parameters that a part of a space keeps at a value of its own.")
        .def(
            "check",
            [](const ActionSpace& space, std::size_t row, const std::vector<float>& action) {
                space.check(row, action);
            },
            nb::arg("row"), nb::arg("action"),
            "Raises ValueError, naming the row, unless the action is one of the space.")
        .def_prop_ro(
            "is_mapped", [](const ActionSpace& space) { return static_cast<bool>(space.decode); },
            "Coordinates stand for parameters: `decode` and `encode` work.")
        .def(
            "decode",
            [](const ActionSpace& space, const std::vector<float>& coordinates) {
                check_mapped(space);
                if (coordinates.size() != space.size()) {
                    throw std::invalid_argument("an action has " + std::to_string(space.size()) +
                                                " coordinates, not " + std::to_string(coordinates.size()));
                }
                ParameterValues values;
                space.decode(coordinates.data(), values);
                return values;
            },
            nb::arg("coordinates"), "The parameters for an action.")
        .def(
            "encode",
            [](const ActionSpace& space, const ParameterValues& values) {
                check_mapped(space);
                return space.encode(values);
            },
            nb::arg("values"), "The action for parameters; None where the space does not have them.");
    module.def("action_spaces", &action_spaces, nb::rv_policy::reference, "Every action space.");
    module.def(
        "find_action_space", &find_action_space, nb::arg("name"), nb::rv_policy::reference,
        "The action space of that name, or a part of it such as 'tuning[gamma,beta]'; ValueError lists those "
        "that there are.");
}

void bind_settings(nb::module_& module) {
    nb::enum_<RewardKind>(module, "RewardKind")
        .value("fair_throughput", RewardKind::fair_throughput)
        .value("delay", RewardKind::delay)
        .value("power", RewardKind::power);
    nb::class_<RewardSettings>(module, "RewardSettings")
        .def(nb::init<>())
        .def_rw("kind", &RewardSettings::kind)
        .def_rw("loss_weight", &RewardSettings::loss_weight)
        .def_rw("fairness_weight", &RewardSettings::fairness_weight)
        .def_rw("delay_weight", &RewardSettings::delay_weight);
    nb::class_<Settings>(module, "EnvironmentSettings")
        .def(
            "__init__",
            [](Settings* settings, const ActionSpace& space, const std::string& layout) {
                new (settings)
                    Settings{.action_space = &space, .observation = &find_observation_layout(layout)};
            },
            nb::arg("action_space"), nb::arg("observations"))
        .def_rw("history_length", &Settings::history_length)
        .def_rw("clips_actions", &Settings::clips_actions)
        .def_prop_rw(
            "decision_interval", [](const Settings& settings) { return settings.decision_interval.time; },
            [](Settings& settings, Time time) { settings.decision_interval.time = time; })
        .def_prop_rw(
            "decision_interval_rtts",
            [](const Settings& settings) { return settings.decision_interval.rtts; },
            [](Settings& settings, double rtts) { settings.decision_interval.rtts = rtts; })
        .def_rw("reward_interval", &Settings::reward_interval)
        .def_rw("reward", &Settings::reward)
        .def_rw("reward_per_flow", &Settings::reward_per_flow)
        .def_rw("records", &Settings::records);
    nb::class_<Plan>(module, "EpisodePlan")
        .def(nb::init<>())
        .def_rw("seed", &Plan::seed)
        .def_rw("agents", &Plan::agents)
        .def_rw("ignores_actions", &Plan::ignores_actions)
        .def_rw("end", &Plan::end)
        .def_rw("length", &Plan::length)
        .def_rw("marks", &Plan::marks);
}

}  // namespace

void bind_environment(nb::module_& module) {
    bind_action_spaces(module);
    bind_settings(module);
    bind_tables(module);
    nb::class_<Episode>(module, "Episode", "An episode at one moment, as Batch.clone returns it.");
    nb::class_<Batch>(module, "Batch",
                      "Episodes side by side; arrays have a row per agent, flags one per simulation.")
        .def_prop_ro("actions",
                     [](Batch& batch) { return rows(batch.buffers().actions, batch.action_size()); })
        .def_prop_ro(
            "observations",
            [](Batch& batch) { return rows(batch.buffers().observations, batch.observation_size()); })
        .def_prop_ro("info", [](Batch& batch) { return rows(batch.buffers().info, kInfoColumns.size()); })
        .def_prop_ro("rewards",
                     [](Batch& batch) {
                         auto& rewards = batch.buffers().rewards;
                         return Array<double>(rewards.data(), {rewards.size()});
                     })
        .def_prop_ro("selected", [](Batch& batch) { return flags(batch.buffers().selected); })
        .def_prop_ro("terminations", [](Batch& batch) { return flags(batch.buffers().terminations); })
        .def_prop_ro("truncations", [](Batch& batch) { return flags(batch.buffers().truncations); })
        .def(
            "reset",
            [](Batch& batch, const std::vector<std::size_t>& indices,
               const std::vector<const Scenario*>& scenarios, const std::vector<Plan>& plans) {
                const OneThread::Alone use(batch.one_thread());
                batch.reset(indices, scenarios, plans);
            },
            nb::arg("indices"), nb::arg("scenarios"), nb::arg("plans"),
            nb::call_guard<nb::gil_scoped_release>())
        .def(
            "step",
            [](Batch& batch) {
                const OneThread::Alone use(batch.one_thread());
                batch.step();
            },
            nb::call_guard<nb::gil_scoped_release>())
        .def(
            "close",
            [](Batch& batch, std::size_t index) {
                const OneThread::Alone use(batch.one_thread());
                batch.close(index);
            },
            nb::arg("simulation"))
        .def(
            "clone",
            [](Batch& batch, const std::vector<std::size_t>& indices) {
                std::vector<std::unique_ptr<Episode>> episodes;
                {
                    const nb::gil_scoped_release released;
                    const OneThread::Alone use(batch.one_thread());
                    episodes = batch.clone(indices);
                }
                nb::typed<nb::list, Episode> result;
                for (auto& episode : episodes) result.append(nb::cast(std::move(episode)));
                return result;
            },
            nb::arg("indices"), "Copies of these simulations' episodes.")
        .def(
            "restore",
            [](Batch& batch, const std::vector<std::size_t>& indices,
               const std::vector<const Episode*>& episodes) {
                const OneThread::Alone use(batch.one_thread());
                batch.restore(indices, episodes);
            },
            nb::arg("indices"), nb::arg("episodes"), nb::call_guard<nb::gil_scoped_release>(),
            "Puts copies of these episodes in the simulations' places; the arrays stay as they are.")
        .def_prop_ro("failed", &Batch::failed, "The first simulation that failed in the last call, or None.")
        .def(
            "simulation",
            [](const Batch& batch, std::size_t index) {
                const OneThread::Use use(batch.one_thread());
                return batch.episode(index).simulation();
            },
            nb::arg("simulation"),
            "The simulation of the present episode. Whoever holds it keeps it when the episode ends.")
        .def(
            "times",
            [](const Batch& batch, std::size_t index) {
                const OneThread::Use use(batch.one_thread());
                const Meter& meter = batch.episode(index).meter();
                return to_array(meter.times(), {meter.times().size()});
            },
            nb::arg("simulation"), "With `records`: the end of each reward interval of the episode, in ns.")
        .def(
            "received",
            [](const Batch& batch, std::size_t index) {
                const OneThread::Use use(batch.one_thread());
                return received_of(batch.episode(index).meter(),
                                   batch.episode(index).simulation()->flow_count());
            },
            nb::arg("simulation"),
            "With `records`: UDP payload in bytes that each flow had received, shape (intervals, flows).")
        .def(
            "totals",
            [](const Batch& batch, std::size_t index, std::size_t mark, std::size_t flow) {
                const OneThread::Use use(batch.one_thread());
                return batch.episode(index).meter().totals(mark, flow);
            },
            nb::arg("simulation"), nb::arg("mark"), nb::arg("flow"),
            "A flow's totals at one of the plan's marks, counted from 0.")
        .def(
            "short_flow_totals",
            [](const Batch& batch, std::size_t index, std::size_t mark, std::size_t entry) {
                const OneThread::Use use(batch.one_thread());
                return as_dict(batch.episode(index).meter().short_flow_totals(mark, entry));
            },
            nb::arg("simulation"), nb::arg("mark"), nb::arg("entry"),
            "Simulation.short_flow_totals at one of the plan's marks, counted from 0.")
        .def(
            "queue_occupancy_seconds",
            [](const Batch& batch, std::size_t index, std::size_t mark) {
                const OneThread::Use use(batch.one_thread());
                return batch.episode(index).meter().queue_occupancy_seconds(mark);
            },
            nb::arg("simulation"), nb::arg("mark"),
            "Simulation.queue_occupancy_seconds at one of the plan's marks.");
}

}  // namespace quicgym::bindings
