#include "sim/policy/policy.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include "controllers/catalogue.hpp"
#include "controllers/envelope.hpp"
#include "controllers/guard.hpp"
#include "sim/environment/environments.hpp"
#include "sim/environment/parameter_mapping.hpp"
#include "sim/policy/authors/agent.hpp"
#include "sim/policy/json.hpp"
#include "sim/policy/safetensors.hpp"
#include "sim/policy/sha256.hpp"

namespace quicgym::policy {

namespace {

constexpr std::int64_t kVersion = 1;  // OBSERVATION_VERSION and ACTION_VERSION of envs/
constexpr std::int64_t kLargestLayer = 65'536;
constexpr std::size_t kMostLayers = 16;
// src/quicgym/input_files.py has the same.
constexpr std::uintmax_t kMostDescriptionBytes = 1U << 20;
constexpr std::uintmax_t kMostWeightsBytes = 1U << 27;

[[noreturn]] void refuse(const std::string& what) {
    throw std::invalid_argument(what);
}

std::string shown(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", number);
    return text;
}

// A value in a message.
std::string shown(const JsonValue& value) {
    if (const auto* const text = value.as<std::string>())
        return "'" + (text->size() <= 60 ? *text : text->substr(0, 57) + "...") + "'";
    if (const std::optional<double> number = value.number()) return shown(*number);
    if (const auto* const flag = value.as<bool>()) return *flag ? "true" : "false";
    if (value.is_null()) return "null";
    return value.as<JsonArray>() != nullptr ? "a list" : "an object";
}

// The fields of an object, each asked for once; what nobody has asked for is an error in the end.
class Fields {
public:
    Fields(const JsonValue& value, std::string prefix) : prefix_(std::move(prefix)) {
        const auto* const object = value.as<JsonObject>();
        if (object == nullptr) refuse((prefix_.empty() ? "the file" : prefix_) + " is no JSON object");
        for (const auto& member : *object) left_.push_back(&member);
    }

    // Null where the field is missing, or null.
    const JsonValue* find(std::string_view name) {
        const auto found = std::find_if(left_.begin(), left_.end(),
                                        [&](const auto* member) { return member->name == name; });
        if (found == left_.end()) return nullptr;
        const JsonValue& value = (*found)->value;
        left_.erase(found);
        return value.is_null() ? nullptr : &value;
    }
    // Whether a field is there, and not null.
    bool has(std::string_view name) {
        std::erase_if(left_,
                      [&](const auto* member) { return member->name == name && member->value.is_null(); });
        return std::any_of(left_.begin(), left_.end(),
                           [&](const auto* member) { return member->name == name; });
    }
    // Passes a field over that may be missing or null, and otherwise is of this kind.
    template <class Kind>
    void pass_over(std::string_view name, const std::string& kind) {
        const JsonValue* const value = find(name);
        if (value != nullptr && value->as<Kind>() == nullptr) wrong(name, value, "give " + kind);
    }
    void pass_over_numbers(std::string_view name) {
        const JsonValue* const value = find(name);
        if (value == nullptr) return;
        const auto* const list = value->as<JsonArray>();
        const auto is_number = [](const JsonValue& item) {
            return item.as<double>() != nullptr || item.as<std::int64_t>() != nullptr;
        };
        if (list == nullptr || !std::all_of(list->begin(), list->end(), is_number))
            wrong(name, value, "give a list of numbers");
    }
    std::string text(std::string_view name, std::size_t most_bytes) {
        const JsonValue* const value = find(name);
        const auto* const text = value == nullptr ? nullptr : value->as<std::string>();
        if (text == nullptr || text->empty() || text->size() > most_bytes)
            wrong(name, value, "give a text of 1 to " + std::to_string(most_bytes) + " bytes");
        return *text;
    }
    std::string one_of(std::string_view name, std::initializer_list<std::string_view> choices) {
        const JsonValue* const value = find(name);
        const auto* const text = value == nullptr ? nullptr : value->as<std::string>();
        if (text != nullptr && std::find(choices.begin(), choices.end(), *text) != choices.end())
            return *text;
        std::string known;
        for (const std::string_view choice : choices)
            known += (known.empty() ? "" : ", ") + std::string(choice);
        wrong(name, value, "give one of " + known);
    }
    double number(std::string_view name, double least, double most) {
        const JsonValue* const value = find(name);
        const std::optional<double> number = value == nullptr ? std::nullopt : value->number();
        if (!number || !(*number >= least && *number <= most))
            wrong(name, value, "give a number " + range(least, most));
        return *number;
    }
    std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most) {
        const JsonValue* const value = find(name);
        const auto* const number = value == nullptr ? nullptr : value->as<std::int64_t>();
        if (number == nullptr || *number < least || *number > most) {
            wrong(name, value,
                  "give a whole number " + range(static_cast<double>(least), static_cast<double>(most)));
        }
        return *number;
    }
    // False where it is missing.
    bool flag(std::string_view name) {
        const JsonValue* const value = find(name);
        if (value == nullptr) return false;
        const auto* const flag = value->as<bool>();
        if (flag == nullptr) wrong(name, value, "give true or false");
        return *flag;
    }
    std::vector<std::size_t> sizes(std::string_view name, std::size_t least) {
        const JsonValue* const value = find(name);
        const auto* const array = value == nullptr ? nullptr : value->as<JsonArray>();
        if (array == nullptr || array->size() < least || array->size() > kMostLayers) {
            wrong(name, value,
                  "give " + std::to_string(least) + " to " + std::to_string(kMostLayers) + " sizes");
        }
        std::vector<std::size_t> result;
        for (const JsonValue& element : *array) {
            const auto* const size = element.as<std::int64_t>();
            if (size == nullptr || *size < 1 || *size > kLargestLayer) {
                wrong(name, &element, "a size is a whole number from 1 to " + std::to_string(kLargestLayer));
            }
            result.push_back(static_cast<std::size_t>(*size));
        }
        return result;
    }
    std::vector<std::string> names(std::string_view name, std::size_t most) {
        const JsonValue* const value = find(name);
        const auto* const array = value == nullptr ? nullptr : value->as<JsonArray>();
        std::vector<std::string> result;
        const std::string remedy = "give 1 to " + std::to_string(most) + " names";
        if (array == nullptr || array->empty() || array->size() > most) wrong(name, value, remedy);
        for (const JsonValue& element : *array) {
            const auto* const text = element.as<std::string>();
            if (text == nullptr || text->empty() || text->size() > 100) wrong(name, &element, remedy);
            result.push_back(*text);
        }
        return result;
    }
    void check_all_read() const {
        if (left_.empty()) return;
        const JsonMember& unknown = *left_.front();
        refuse(named(unknown.name) + " = " + shown(unknown.value) + ": unknown field; leave it out");
    }

private:
    std::string named(std::string_view name) const {
        return prefix_ + (prefix_.empty() ? "" : ".") + std::string(name);
    }
    [[noreturn]] void wrong(std::string_view name, const JsonValue* value, const std::string& remedy) const {
        refuse(named(name) + (value == nullptr ? ": is missing; " : " = " + shown(*value) + ": ") + remedy);
    }
    static std::string range(double least, double most) {
        return "from " + shown(least) + (std::isfinite(most) ? " to " + shown(most) : " on");
    }

    std::string prefix_;
    std::vector<const JsonMember*> left_;
};

// A pipe would make it wait, and a device has no end.
std::string read_file(const std::string& path, std::uintmax_t most_bytes) {
    std::error_code problem;
    const auto kind = std::filesystem::status(path, problem).type();
    if (kind == std::filesystem::file_type::not_found) refuse("cannot be read: No such file or directory");
    if (kind == std::filesystem::file_type::directory) refuse("cannot be read: Is a directory");
    if (!problem && kind != std::filesystem::file_type::regular)
        refuse("cannot be read: Is a pipe or a device, not a regular file");
    const std::uintmax_t size = problem ? 0 : std::filesystem::file_size(path, problem);
    if (problem) refuse("cannot be read: " + problem.message());
    if (size > most_bytes) {
        refuse("cannot be read: Has " + std::to_string(size) + " bytes, more than the " +
               std::to_string(most_bytes) + " that are read");
    }
    std::ifstream file(path, std::ios::binary);
    std::string text(size, '\0');
    file.read(text.data(), static_cast<std::streamsize>(size));
    if (!file.is_open() || file.bad()) refuse(std::string("cannot be read: ") + std::strerror(errno));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
}

void check_version(Fields& fields, const char* name) {
    const std::int64_t version = fields.integer(name, INT32_MIN, INT32_MAX);
    if (version == kVersion) return;
    refuse(std::string(name) + " = " + std::to_string(version) +
           ": the environments of this quicgym have version " + std::to_string(kVersion) +
           "; train it again, or use the quicgym that it was trained with");
}

Architecture architecture_of(const JsonValue* value, bool of_agent) {
    if (value == nullptr) refuse("architecture: is missing; train the policy again");
    using Choices = std::initializer_list<std::string_view>;
    const Choices kActivations = {"tanh", "relu"}, kAgentsActivations = {"tanh", "leaky-relu"};
    const Choices kOutputs = {"clip", "tanh", "argmax"}, kAgentsOutputs = {"linear", "tanh", "argmax"};
    Fields fields(*value, "architecture");
    Architecture architecture;
    if (of_agent && fields.has("lstm_size"))
        architecture.lstm_size = static_cast<std::size_t>(fields.integer("lstm_size", 1, kLargestLayer));
    architecture.extractor_sizes = fields.sizes("extractor_sizes", architecture.lstm_size > 0 ? 0 : 1);
    architecture.hidden_sizes = fields.sizes("hidden_sizes", 0);
    architecture.activation = fields.one_of("activation", of_agent ? kAgentsActivations : kActivations);
    architecture.output = fields.one_of("output", of_agent ? kAgentsOutputs : kOutputs);
    fields.check_all_read();
    return architecture;
}

void choose_controller(Policy& policy, const environment::Environment& chosen,
                       const std::optional<std::string>& name, const std::vector<std::string>& coordinates) {
    std::string space(chosen.action_space);
    policy.controller = chosen.controller;
    if (name) {
        if (!chosen.tunes) {
            refuse("controller = '" + *name + "': the actions of " + std::string(chosen.id) + " are for " +
                   policy.controller);
        }
        policy.controller = find_controller(*name).name;
        space = "tuning:" + *name;
    }
    if (!coordinates.empty()) {
        space = space.substr(0, space.find('[')) + "[";
        for (const std::string& coordinate : coordinates) space += coordinate + ",";
        space.back() = ']';
    }
    policy.action_space = &environment::find_action_space(space);
}

// The policy that a description stands for in its environment, still without the network.
Policy policy_of(const Description& description) {
    const environment::Environment& chosen = environment::find_environment(description.environment);
    Policy policy;
    policy.name = description.name;
    policy.decision_interval.time = std::llround(1e6 * description.decision_interval_ms);
    if (description.decision_interval_rtts)
        policy.decision_interval.rtts = *description.decision_interval_rtts;
    policy.history_length = description.history_length;
    policy.observations = &environment::find_observation_layout(
        description.observations ? std::string_view(*description.observations) : chosen.observations);
    policy.guard = description.guard;
    choose_controller(policy, chosen, description.controller, description.coordinates);
    check_fit(description.architecture, *policy.action_space, std::string(chosen.id));
    return policy;
}

ControllerSpecification specification_of(const AgentKind& agent, Architecture architecture, Tensors tensors) {
    if (architecture.output != agent.output) {
        refuse("architecture.output = '" + architecture.output + "': " + std::string(agent.name) + " has " +
               std::string(agent.output) + "; import the agent again");
    }
    architecture.observation_size = agent.inputs;
    architecture.outputs = agent.outputs;
    return agent.specification(std::make_shared<const Network>(architecture, std::move(tensors)));
}

// A file or memory, which is not read before it is needed.
struct Source {
    std::string name;  // in errors
    std::function<std::string()> read;
};

Policy read_policy(const Source& description_source, const Source& weights_source) {
    const Source* source = &description_source;
    try {
        const Description description = read_description(source->read());
        Policy policy = description.agent.empty() ? policy_of(description) : Policy{};
        source = &weights_source;
        const std::string weights = source->read();
        if (const std::string actual = sha256(weights); actual != description.sha256) {
            refuse("its SHA-256 is " + actual + ", the description says " + description.sha256 +
                   "; get both files again, from the same place");
        }
        Architecture architecture = description.architecture;
        Tensors tensors(read_safetensors(weights));
        if (!description.agent.empty()) {
            policy.name = description.name;
            policy.agent = specification_of(find_agent(description.agent), architecture, std::move(tensors));
            policy.agent->name = description.name;
            return policy;
        }
        architecture.observation_size =
            environment::observation_size(*policy.observations, policy.history_length, *policy.action_space);
        architecture.outputs = policy.action_space->shown_size();
        policy.network = std::make_unique<const Network>(architecture, std::move(tensors));
        return policy;
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(source->name + ": " + error.what());
    }
}

}  // namespace

Description read_description(const std::string& text) {
    JsonValue document;
    try {
        document = read_json(text);
    } catch (const JsonError& error) {
        refuse(std::string("not valid JSON: ") + error.what());
    }
    Fields fields(document, "");
    if (fields.has("format")) fields.one_of("format", {"quicgym-policy-1"});
    Description description;
    description.name = fields.text("name", 100);
    fields.pass_over<std::string>("description", "a text");
    fields.pass_over<JsonObject>("training", "an object");
    fields.pass_over<JsonObject>("evaluation", "an object");
    if (fields.has("agent")) {
        description.agent = find_agent(fields.text("agent", 100)).name;
        description.architecture = architecture_of(fields.find("architecture"), true);
        description.sha256 = fields.text("sha256", 64);
        fields.check_all_read();
        return description;
    }
    description.environment = fields.text("environment", 100);
    check_version(fields, "observation_version");
    check_version(fields, "action_version");
    fields.pass_over_numbers("action_effect");
    description.decision_interval_ms = fields.number("decision_interval_ms", 1.0, 60'000.0);
    if (fields.has("decision_interval_rtts"))
        description.decision_interval_rtts = fields.number("decision_interval_rtts", 0.1, 1000.0);
    description.history_length = static_cast<std::size_t>(fields.integer("history_length", 1, 1000));
    if (fields.has("observations")) description.observations = fields.text("observations", 100);
    if (fields.has("controller")) description.controller = fields.text("controller", 1000);
    if (fields.has("coordinates"))
        description.coordinates = fields.names("coordinates", environment::kMostCoordinates);
    description.guard = fields.flag("guard");
    description.architecture = architecture_of(fields.find("architecture"), false);
    description.sha256 = fields.text("sha256", 64);
    fields.check_all_read();
    return description;
}

void check_fit(const Architecture& architecture, const environment::ActionSpace& actions,
               const std::string& environment) {
    if ((architecture.output == "argmax") == actions.choices.empty()) {
        refuse("architecture.output = '" + architecture.output + "': does not fit the actions of " +
               environment + "; train it again");
    }
}

std::unique_ptr<Controller> Policy::make_controller(std::uint64_t max_datagram_bytes) const {
    if (agent) return agent->make(complete_parameters(*agent, {}), max_datagram_bytes);
    std::unique_ptr<Controller> made = quicgym::make_controller(controller, {}, max_datagram_bytes);
    if (guard) made = std::make_unique<Guarded>(std::move(made));
    return std::make_unique<Enveloped>(std::move(made));
}

Policy load_policy(const std::string& path) {
    constexpr std::string_view kSuffix = ".json";
    if (!path.ends_with(kSuffix))
        refuse(path + ": give the path of a description, whose name ends with .json");
    const std::string weights = path.substr(0, path.size() - kSuffix.size()) + ".safetensors";
    return read_policy({path, [&] { return read_file(path, kMostDescriptionBytes); }},
                       {weights, [&] { return read_file(weights, kMostWeightsBytes); }});
}

Policy read_policy(std::string_view description, std::string_view weights) {
    return read_policy({"description", [&] { return std::string(description); }},
                       {"weights", [&] { return std::string(weights); }});
}

}  // namespace quicgym::policy
