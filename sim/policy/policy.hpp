// A learned policy from its two files: the description (JSON) and the weights (safetensors).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "controllers/controller.hpp"
#include "sim/environment/decision.hpp"
#include "sim/policy/network.hpp"

namespace quicgym::policy {

// quicgym.agents.policies.learned.PolicyDescription, as far as deciding needs it.
struct Policy {
    std::string name;
    const environment::ActionSpace* action_space = nullptr;
    const environment::ObservationLayout* observations = nullptr;
    std::size_t history_length = 0;
    std::string controller;
    bool scales = false;
    bool safe_envelope = false;
    environment::DecisionInterval decision_interval{};
    std::optional<environment::Preference> preference;  // at the end of observations
    std::unique_ptr<const Network> network;

    std::unique_ptr<Controller> make_controller(std::uint64_t max_datagram_bytes) const;
};

// The weights are beside the description, whose name ends with .json. Throws std::invalid_argument that names
// the file and what is wrong: with the JSON, a field, a version, the checksum or a tensor.
Policy load_policy(const std::string& path);

}  // namespace quicgym::policy
