// The simulator for a web page: a scenario as JavaScript has it goes in, what happened comes out. Fields have
// the names and the meaning that they have in a scenario's YAML, so that the page's "Copy as YAML" is what
// was run. `make playground` compiles this file with the simulator's own sources.
#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "controllers/catalogue.hpp"
#include "sim/environment/action_space.hpp"
#include "sim/environment/episode.hpp"
#include "sim/environment/observation.hpp"
#include "sim/net/engine.hpp"
#include "sim/policy/policy.hpp"
#include "sim/queue_disciplines.hpp"
#include "sim/scenario.hpp"

namespace quicgym::playground {

namespace {

using emscripten::val;

// The same as envs/scenarios/conversion.py, links.py and paths.py in Python. std::nearbyint rounds halves to
// even numbers, as Python does.

std::uint64_t whole(double value) {
    return static_cast<std::uint64_t>(std::nearbyint(value));
}

Time from_seconds(double seconds) {
    return static_cast<Time>(std::nearbyint(seconds * 1e9));
}

double number(const val& fields, const char* name) {
    return fields[name].as<double>();
}

std::string text(const val& fields, const char* name) {
    return fields[name].as<std::string>();
}

Time milliseconds(const val& fields, const char* name) {
    return from_seconds(number(fields, name) / 1e3);
}

std::uint64_t bits_per_second(const val& fields, const char* name) {
    return whole(number(fields, name) * 1e6);
}

constexpr double kPacketBytes = 1200 + static_cast<double>(kLinkBytes);

constexpr Time kRewardInterval = 100 * kMillisecond;

// A copy in JavaScript's own memory.
val as_array(const std::vector<double>& values) {
    return val::global("Float64Array").new_(emscripten::typed_memory_view(values.size(), values.data()));
}

// The limit in packets or bytes, in place of one in bandwidth-delay products.
void set_queue_limit(Link& link, const val& bottleneck, double base_rtt_ms) {
    const val queue = bottleneck["queue"];
    const double limit = number(queue, "limit");
    const std::string unit = text(queue, "unit");
    link.queue_unit = unit == "packets" ? QueueUnit::packets : QueueUnit::bytes;
    link.queue_limit = whole(limit);
    if (unit == "bdp") {
        const double limit_bytes = limit * number(bottleneck, "rate_mbps") * 125 * base_rtt_ms;
        const Discipline* const discipline = find_discipline(link.queue_discipline);
        const bool counts_bytes = discipline == nullptr || discipline->counts_bytes;
        link.queue_unit = counts_bytes ? QueueUnit::bytes : QueueUnit::packets;
        link.queue_limit = whole(counts_bytes ? limit_bytes : limit_bytes / kPacketBytes);
    }
    const double least = link.queue_unit == QueueUnit::bytes ? kPacketBytes : 1.0;
    if (static_cast<double>(link.queue_limit) < least)
        throw std::invalid_argument(
            "queue: no packet fits, because one takes 1230 bytes; give a larger queue");
}

Link read_link(const val& bottleneck, double base_rtt_ms) {
    Link link;
    link.rate_bits_per_second = bits_per_second(bottleneck, "rate_mbps");
    link.delay = milliseconds(bottleneck, "delay_ms");
    const val queue = bottleneck["queue"];
    link.queue_discipline = text(queue, "discipline");
    link.ecn_marking = queue["ecn_marking"].isTrue();
    set_queue_limit(link, bottleneck, base_rtt_ms);
    if (const val loss = bottleneck["loss"]; !loss.isUndefined()) {
        link.loss.kind = LossKind::bernoulli;
        link.loss.probability = number(loss, "probability");
    }
    if (const val schedule = bottleneck["rate_schedule"]; !schedule.isUndefined()) {
        for (const val& step : emscripten::vecFromJSArray<val>(schedule)) {
            link.rate_schedule.push_back(
                {from_seconds(number(step, "at_s")), bits_per_second(step, "rate_mbps")});
        }
    }
    check_queue(link, "bottleneck");
    return link;
}

// The way back where none is described: rate, delay and queue limit, drop-tail, no loss.
Link plain_reverse(const val& bottleneck, double base_rtt_ms) {
    Link link;
    link.rate_bits_per_second = bits_per_second(bottleneck, "rate_mbps");
    link.delay = milliseconds(bottleneck, "delay_ms");
    set_queue_limit(link, bottleneck, base_rtt_ms);
    return link;
}

ParameterValues read_parameters(const val& given, const ControllerSpecification& controller) {
    ParameterValues values;
    if (given.isUndefined()) return values;
    for (const ParameterSpecification& parameter : controller.parameters) {
        const val value = given[parameter.name];
        if (value.isUndefined()) continue;
        if (value.isArray()) {
            values[parameter.name] = emscripten::vecFromJSArray<double>(value);
        } else if (value.isString()) {
            const auto& choices = parameter.choices;
            const auto place = std::find(choices.begin(), choices.end(), value.as<std::string>());
            values[parameter.name] = {static_cast<double>(place - choices.begin())};
        } else {
            values[parameter.name] = {value.as<double>()};
        }
    }
    return values;
}

// 16 times what the path holds, 64 MiB at least.
std::uint64_t flow_control_window_bytes(const Scenario& scenario, const val& document) {
    const val bottleneck = document["bottleneck"];
    double rate_mbps = number(bottleneck, "rate_mbps");
    for (const RateStep& step : scenario.bottleneck.rate_schedule)
        rate_mbps = std::max(rate_mbps, static_cast<double>(step.rate_bits_per_second) / 1e6);
    double rtt_ms = 0.0;
    for (const val& flow : emscripten::vecFromJSArray<val>(document["flows"])) {
        rtt_ms =
            std::max(rtt_ms, 4 * number(document["access"], "delay_ms") + 2 * number(flow, "extra_delay_ms"));
    }
    double queue_bytes = 0.0;
    for (const Link& link : {scenario.bottleneck, scenario.reverse}) {
        rtt_ms += number(bottleneck, "delay_ms");
        queue_bytes += static_cast<double>(link.queue_limit) *
                       (link.queue_unit == QueueUnit::packets ? kPacketBytes : 1.0);
    }
    const double path_bytes = 125e3 * rate_mbps * rtt_ms * 1e-3 + queue_bytes;
    return std::max<std::uint64_t>(64U << 20U, whole(16 * path_bytes));
}

double base_rtt_ms(const val& document) {
    double lowest = INFINITY;
    for (const val& flow : emscripten::vecFromJSArray<val>(document["flows"])) {
        const double access_ms = number(document["access"], "delay_ms");
        const double delay_ms = number(document["bottleneck"], "delay_ms");
        lowest =
            std::min(lowest, 2 * (2 * access_ms + number(flow, "extra_delay_ms")) + (delay_ms + delay_ms));
    }
    return lowest;
}

// Flows without a controller have the policy, which may be null where every flow has one.
Scenario read_scenario(const val& document, const policy::Policy* policy) {
    Scenario scenario;
    const double rtt_ms = base_rtt_ms(document);
    scenario.bottleneck = read_link(document["bottleneck"], rtt_ms);
    scenario.reverse = plain_reverse(document["bottleneck"], rtt_ms);
    const std::uint64_t window_bytes = flow_control_window_bytes(scenario, document);
    for (const val& given : emscripten::vecFromJSArray<val>(document["flows"])) {
        Flow flow;
        flow.name = text(given, "name");
        flow.access_rate_bits_per_second = bits_per_second(document["access"], "rate_mbps");
        flow.access_delay = milliseconds(document["access"], "delay_ms");
        flow.start = from_seconds(number(given, "start_s"));
        flow.extra_delay = milliseconds(given, "extra_delay_ms");
        flow.flow_control_window_bytes = window_bytes;
        flow.ecn = given["ecn"].isTrue();
        if (given["controller"].isUndefined()) {
            flow.controller = policy->controller;
            flow.controller_factory = [policy](const ParameterValues&, std::uint64_t max_datagram_bytes) {
                return policy->make_controller(max_datagram_bytes);
            };
        } else {
            flow.controller = text(given, "controller");
            flow.parameters = read_parameters(given["parameters"], find_controller(flow.controller));
        }
        scenario.flows.push_back(std::move(flow));
    }
    check_chain(scenario);
    return scenario;
}

// Rows as one array of numbers per member. Whole numbers are exact, because none is above 2^53.
template <class Row>
val as_columns(const std::vector<Row>& rows) {
    val columns = val::object();
    Row::for_each_field([&](const char* name, auto member) {
        std::vector<double> values;
        for (const Row& row : rows) values.push_back(static_cast<double>(row.*member));
        columns.set(name, as_array(values));
    });
    return columns;
}

val as_object(const FlowStatistics& totals) {
    val object = val::object();
    FlowStatistics::for_each_field(
        [&](const char* name, auto member) { object.set(name, static_cast<double>(totals.*member)); });
    if (totals.completion == kNever) object.set("completion", val::null());
    return object;
}

std::map<std::string, policy::Policy>& policies() {
    static std::map<std::string, policy::Policy> all;
    return all;
}

void act(const policy::Policy& policy, const float* observation, policy::Scratch& scratch, float* action) {
    policy.network->compute(observation, scratch);
    const std::vector<float>& values = scratch.values;
    if (policy.network->chooses()) {
        *action = static_cast<float>(std::max_element(values.begin(), values.end()) - values.begin());
    } else {
        std::copy(values.begin(), values.end(), action);
    }
}

// Without a policy nobody acts, and the episode only measures: then what it observes does not matter.
environment::Settings settings_of(const policy::Policy* policy) {
    environment::Settings settings{.reward_interval = kRewardInterval};
    if (policy != nullptr) {
        settings.action_space = policy->action_space;
        settings.observation = policy->observations;
        settings.history_length = policy->history_length;
        settings.decision_interval = policy->decision_interval;
    } else {
        settings.action_space = &environment::action_spaces().front();
        settings.observation = &environment::observation_layouts().front();
        settings.decision_interval.time = kRewardInterval;
    }
    return settings;
}

val column_names() {
    val names = val::array();
    for (std::size_t i = 0; i < environment::kRunColumns; ++i)
        names.call<void>("push", std::string(environment::kInfoColumns[i].name));
    names.call<void>("push", std::string("reward"));
    return names;
}

// The columns of the run and the reward, at the end of each step.
std::vector<double> play(environment::Episode& episode, const policy::Policy* policy) {
    const std::size_t agents = episode.agent_count();
    const std::size_t observation_size = environment::Episode::observation_size(episode.settings());
    const std::size_t action_size = episode.settings().action_space->size();
    std::vector<float> observations(agents * observation_size);
    std::vector<float> actions(agents * action_size);
    std::vector<double> info(agents * environment::kInfoColumns.size());
    std::vector<double> rewards(agents);
    policy::Scratch scratch;
    std::vector<double> rows;
    for (environment::Status status; !status.terminated && !status.truncated;) {
        if (policy != nullptr) {
            episode.write_observations(observations.data());
            for (std::size_t agent = 0; agent < agents; ++agent) {
                act(*policy, &observations[agent * observation_size], scratch, &actions[agent * action_size]);
            }
        }
        status = episode.step(actions.data());
        episode.write_info(info.data());
        episode.write_rewards(rewards.data());
        rows.insert(rows.end(), info.begin(), info.begin() + environment::kRunColumns);
        rows.push_back(rewards.front());
    }
    return rows;
}

val run_checked(const val& document, const std::string& policy_name, double seed, double trace_interval_ms) {
    const policy::Policy* const policy = policy_name.empty() ? nullptr : &policies().at(policy_name);
    Scenario scenario = read_scenario(document, policy);
    scenario.trace_interval = from_seconds(trace_interval_ms / 1e3);
    environment::Plan plan{.seed = static_cast<std::uint64_t>(seed),
                           .ignores_actions = policy == nullptr,
                           .end = from_seconds(number(document, "duration_s"))};
    for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
        if (policy == nullptr || document["flows"][i]["controller"].isUndefined()) plan.agents.push_back(i);
    }
    const environment::Settings settings = settings_of(policy);
    environment::Episode episode(std::make_unique<net::NativeSimulation>(scenario, plan.seed), scenario,
                                 settings, plan);
    Simulation& simulation = *episode.simulation();
    val result = val::object();
    result.set("begin_s", to_seconds(simulation.now()));
    result.set("rows", as_array(play(episode, policy)));
    result.set("columns", column_names());
    val flows = val::array();
    for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
        val flow = val::object();
        flow.set("totals", as_object(simulation.statistics(i)));
        flow.set("trace", as_columns(simulation.trace(i)));
        flows.call<void>("push", flow);
    }
    result.set("flows", flows);
    result.set("queue", as_columns(simulation.queue_trace(0)));
    return result;
}

// A result, or an object whose `error` says what is wrong.
val run(const val& document, const std::string& policy, double seed, double trace_interval_ms) {
    try {
        return run_checked(document, policy, seed, trace_interval_ms);
    } catch (const std::exception& error) {
        val failed = val::object();
        failed.set("error", std::string(error.what()));
        return failed;
    }
}

// Whether this program can run the policy, which `run` knows by its name from now on.
bool add_policy(const std::string& name, const std::string& description, const std::string& weights) {
    try {
        policy::Policy policy = policy::read_policy(description, weights);
        if (policy.agent) return false;
        const std::size_t observed = environment::Episode::observation_size(settings_of(&policy));
        if (policy.network->architecture().observation_size != observed) return false;
        policies().insert_or_assign(name, std::move(policy));
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

// The choices that the page offers: names, ranges and scales come from the catalogue.

// Below 0 for what agents of the environment Tuning set, in their order, else 0: the page shows such
// parameters first.
double tuned_place(const std::string& parameter) {
    const environment::ActionSpace& space = environment::find_action_space("tuning");
    const auto group = space.groups.find(parameter);
    const std::string& first = group == space.groups.end() ? parameter : group->second.front();
    const auto place = std::find(space.coordinates.begin(), space.coordinates.end(), first);
    return static_cast<double>(place - space.coordinates.end());
}

val describe(const ParameterSpecification& parameter) {
    val object = val::object();
    object.set("name", parameter.name);
    object.set("default", val::array(parameter.default_value));
    object.set("minimum", parameter.minimum);
    object.set("maximum", parameter.maximum);
    object.set("is_list", parameter.is_list);
    object.set("unit", parameter.unit);
    object.set("description", parameter.description);
    object.set("scale", std::string(name_of(parameter.scale)));
    object.set("scale_offset", parameter.scale_offset);
    object.set("choices", val::array(parameter.choices));
    object.set("tuned_place", tuned_place(parameter.name));
    return object;
}

// The controllers that decide by themselves, in the order in which evaluations show them.
val controllers() {
    val all = val::array();
    for (const std::string& name : baselines()) {
        const ControllerSpecification& controller = find_controller(name);
        val object = val::object();
        object.set("name", controller.name);
        object.set("description", controller.description);
        val parameters = val::array();
        for (const ParameterSpecification& parameter : controller.parameters)
            parameters.call<void>("push", describe(parameter));
        object.set("parameters", parameters);
        all.call<void>("push", object);
    }
    return all;
}

val queue_disciplines() {
    val all = val::array();
    for (const Discipline& discipline : disciplines()) {
        val object = val::object();
        object.set("name", discipline.name);
        object.set("can_mark", discipline.can_mark);
        object.set("always_marks", discipline.always_marks);
        all.call<void>("push", object);
    }
    return all;
}

}  // namespace

EMSCRIPTEN_BINDINGS(playground) {
    emscripten::function("run", &run);
    emscripten::function("addPolicy", &add_policy);
    emscripten::function("controllers", &controllers);
    emscripten::function("queueDisciplines", &queue_disciplines);
}

}  // namespace quicgym::playground
