#include "sim/policy/policy.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "controllers/catalogue.hpp"
#include "controllers/envelope.hpp"
#include "controllers/scaled.hpp"
#include "sim/environment/environments.hpp"
#include "sim/policy/json.hpp"
#include "sim/policy/safetensors.hpp"
#include "sim/policy/sha256.hpp"

namespace quicgym::policy {

namespace {

constexpr std::int64_t kVersion = 1;  // OBSERVATION_VERSION and ACTION_VERSION of envs/
constexpr std::int64_t kLargestLayer = 65'536;
constexpr std::size_t kMostLayers = 16;

[[noreturn]] void refuse(const std::string& what) {
    throw std::invalid_argument(what);
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
    std::string text(std::string_view name) {
        const JsonValue* const value = find(name);
        if (value == nullptr || !value->as<std::string>()) refuse(named(name) + ": give a string");
        return *value->as<std::string>();
    }
    double number(std::string_view name, double least, double most) {
        const JsonValue* const value = find(name);
        const std::optional<double> number = value == nullptr ? std::nullopt : value->number();
        if (!number || !(*number >= least && *number <= most)) refuse_range(name, least, most, "a number");
        return *number;
    }
    std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most) {
        const JsonValue* const value = find(name);
        const auto* const number = value == nullptr ? nullptr : value->as<std::int64_t>();
        if (number == nullptr || *number < least || *number > most) {
            refuse_range(name, static_cast<double>(least), static_cast<double>(most), "a whole number");
        }
        return *number;
    }
    std::vector<std::size_t> sizes(std::string_view name, std::size_t least) {
        const JsonValue* const value = find(name);
        const auto* const array = value == nullptr ? nullptr : value->as<JsonArray>();
        if (array == nullptr || array->size() < least || array->size() > kMostLayers) {
            refuse(named(name) + ": give " + std::to_string(least) + " to " + std::to_string(kMostLayers) +
                   " sizes");
        }
        std::vector<std::size_t> result;
        for (const JsonValue& element : *array) {
            const auto* const size = element.as<std::int64_t>();
            if (size == nullptr || *size < 1 || *size > kLargestLayer) {
                refuse(named(name) + ": a size is a whole number from 1 to " + std::to_string(kLargestLayer));
            }
            result.push_back(static_cast<std::size_t>(*size));
        }
        return result;
    }
    void check_all_read() const {
        if (!left_.empty()) refuse("unknown field " + named(left_.front()->name));
    }

private:
    std::string named(std::string_view name) const {
        return prefix_ + (prefix_.empty() ? "" : ".") + std::string(name);
    }
    [[noreturn]] void refuse_range(std::string_view name, double least, double most, const char* what) const {
        const auto shown = [](double number) {
            std::string text = std::to_string(number);
            text.erase(text.find_last_not_of('0') + 1);
            if (text.back() == '.') text.pop_back();
            return text;
        };
        refuse(named(name) + ": give " + what + " from " + shown(least) +
               (std::isfinite(most) ? " to " + shown(most) : " on"));
    }

    std::string prefix_;
    std::vector<const JsonMember*> left_;
};

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file.is_open() || file.bad()) refuse(std::string("cannot be read: ") + std::strerror(errno));
    return text;
}

void check_version(Fields& fields, const char* name) {
    const std::int64_t version = fields.integer(name, INT32_MIN, INT32_MAX);
    if (version == kVersion) return;
    refuse(std::string(name) + " = " + std::to_string(version) + "; this quicgym has version " +
           std::to_string(kVersion) + "; train the policy again");
}

environment::Preference preference_of(const JsonValue& value) {
    Fields fields(value, "preference");
    environment::Preference weights{};
    for (std::size_t i = 0; i < weights.size(); ++i) {
        weights[i] = fields.number(environment::kPreferenceTerms[i], 0.0, HUGE_VAL);
    }
    fields.check_all_read();
    const double largest = *std::max_element(weights.begin(), weights.end());
    if (largest == 0.0) refuse("preference: no weight is above 0");
    double sum = 0.0;
    for (const double weight : weights) sum += weight / largest;  // so that no sum is infinite
    for (double& weight : weights) weight = weight / largest / sum;
    return weights;
}

Architecture architecture_of(const JsonValue* value) {
    if (value == nullptr) refuse("architecture: is missing");
    Fields fields(*value, "architecture");
    Architecture architecture;
    architecture.extractor = fields.text("extractor");
    architecture.extractor_sizes = fields.sizes("extractor_sizes", 1);
    architecture.hidden_sizes = fields.sizes("hidden_sizes", 0);
    architecture.activation = fields.text("activation");
    architecture.output = fields.text("output");
    fields.check_all_read();
    return architecture;
}

void choose_controller(Policy& policy, const environment::Environment& chosen, const JsonValue* value) {
    std::string space(chosen.action_space);
    policy.controller = chosen.controller;
    if (value != nullptr) {
        const auto* const name = value->as<std::string>();
        if (name == nullptr) refuse("controller: give a string");
        if (chosen.choice == environment::ControllerChoice::fixed) {
            refuse("controller = '" + *name + "': the actions of " + std::string(chosen.id) + " are for " +
                   policy.controller);
        }
        policy.controller = find_controller(*name).name;
        if (chosen.choice == environment::ControllerChoice::tuned) space = "tuning:" + *name;
    }
    policy.action_space = &environment::find_action_space(space);
}

// Returns what the network has to be, and the weights' checksum.
std::pair<Architecture, std::string> read_description(const std::string& text, Policy& policy) {
    const JsonValue document = read_json(text);
    Fields fields(document, "");
    if (const JsonValue* const format = fields.find("format")) {
        const auto* const known = format->as<std::string>();
        if (known == nullptr || *known != "quicgym-policy-1") refuse("format: is not quicgym-policy-1");
    }
    policy.name = fields.text("name");
    for (const char* name : {"description", "training", "evaluation"}) fields.find(name);
    const environment::Environment& chosen = environment::find_environment(fields.text("environment"));
    check_version(fields, "observation_version");
    check_version(fields, "action_version");
    policy.decision_interval.time = std::llround(1e6 * fields.number("decision_interval_ms", 1.0, 60'000.0));
    if (const JsonValue* const rtts = fields.find("decision_interval_rtts")) {
        const std::optional<double> number = rtts->number();
        if (!number || !(*number >= 0.1 && *number <= 1000.0)) {
            refuse("decision_interval_rtts: give a number from 0.1 to 1000");
        }
        policy.decision_interval.rtts = *number;
    }
    policy.history_length = static_cast<std::size_t>(fields.integer("history_length", 1, 1000));
    policy.observations = &environment::find_observation_layout(chosen.observations);
    policy.scales = chosen.scales;
    policy.safe_envelope = chosen.safe_envelope;
    choose_controller(policy, chosen, fields.find("controller"));
    if (const JsonValue* const preference = fields.find("preference")) {
        policy.preference = preference_of(*preference);
    }
    Architecture architecture = architecture_of(fields.find("architecture"));
    const std::string checksum = fields.text("sha256");
    fields.check_all_read();

    const std::string id(chosen.id);
    if (architecture.extractor != "mlp" && policy.observations->name != "frames") {
        refuse("architecture.extractor = '" + architecture.extractor + "' does not fit the observations of " +
               id);
    }
    if ((architecture.output == "argmax") == policy.action_space->choices.empty()) {
        refuse("architecture.output = '" + architecture.output + "' does not fit the actions of " + id);
    }
    architecture.history_length = policy.history_length;
    architecture.observation_size = environment::observation_size(
        *policy.observations, policy.history_length, *policy.action_space, policy.preference.has_value());
    architecture.outputs = policy.action_space->shown_size();
    return {architecture, checksum};
}

}  // namespace

std::unique_ptr<Controller> Policy::make_controller(std::uint64_t max_datagram_bytes) const {
    std::unique_ptr<Controller> made = quicgym::make_controller(controller, {}, max_datagram_bytes);
    if (scales) made = std::make_unique<Scaled>(std::move(made));
    if (safe_envelope) made = std::make_unique<Enveloped>(std::move(made));
    return made;
}

Policy load_policy(const std::string& path) {
    constexpr std::string_view kSuffix = ".json";
    if (!path.ends_with(kSuffix))
        refuse(path + ": give the path of a description, whose name ends with .json");
    std::string file = path;
    try {
        Policy policy;
        const auto [architecture, checksum] = read_description(read_file(path), policy);
        file = path.substr(0, path.size() - kSuffix.size()) + ".safetensors";
        const std::string weights = read_file(file);
        if (const std::string actual = sha256(weights); actual != checksum) {
            refuse("its SHA-256 is " + actual + ", the description says " + checksum +
                   "; get both files again, from the same place");
        }
        policy.network = std::make_unique<const Network>(architecture, Tensors(read_safetensors(weights)));
        return policy;
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(file + ": " + error.what());
    }
}

}  // namespace quicgym::policy
