// A learned policy, or an agent of other authors, from its two files: the description (JSON) and the weights
// (safetensors).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controllers/catalogue.hpp"
#include "controllers/controller.hpp"
#include "sim/environment/decision.hpp"
#include "sim/policy/architecture.hpp"
#include "sim/policy/network.hpp"

namespace quicgym::policy {

// The content of a description, with every value in range. Whether it fits its environment is not checked,
// because a user may define environments in Python.
struct Description {
    std::string name;
    std::string agent;        // of other authors (authors/agent.hpp); what environments have is empty then
    std::string environment;  // a name or an id
    double decision_interval_ms = 0.0;
    std::optional<double> decision_interval_rtts;
    std::size_t history_length = 0;
    std::optional<std::string> observations;  // their layout; else the environment's
    std::optional<std::string> controller;
    std::vector<std::string> coordinates;  // which actions have; else all of the environment's
    bool guard = false;
    Architecture architecture;  // without what the environment adds
    std::string sha256;         // of the weights
};

// Anybody may have made the text. Throws std::invalid_argument that names field, value and remedy.
Description read_description(const std::string& text);

// Throws std::invalid_argument for a network that cannot act in an environment.
void check_fit(const Architecture& architecture, const environment::ActionSpace& actions,
               const std::string& environment);

// A description with its network and what the environment adds.
struct Policy {
    std::string name;
    // An agent of other authors, which is a controller and has no other member but its name.
    std::optional<ControllerSpecification> agent;
    const environment::ActionSpace* action_space = nullptr;
    const environment::ObservationLayout* observations = nullptr;
    std::size_t history_length = 0;
    std::string controller;
    bool guard = false;
    environment::DecisionInterval decision_interval{};
    std::unique_ptr<const Network> network;

    std::unique_ptr<Controller> make_controller(std::uint64_t max_datagram_bytes) const;
};

// The weights are next to the description, whose name ends with .json. Throws std::invalid_argument that
// names the file and what is wrong: with the JSON, a field, a version, the checksum or a tensor.
Policy load_policy(const std::string& path);

// The same of both files' content; errors name "description" or "weights".
Policy read_policy(std::string_view description, std::string_view weights);

}  // namespace quicgym::policy
