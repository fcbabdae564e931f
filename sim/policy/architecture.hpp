// What a policy's network is made of.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace quicgym::policy {

// quicgym.agents.policies.architecture.Architecture, and what the environment adds.
struct Architecture {
    std::string extractor;                     // "mlp", "gru" or "multi-scale"
    std::vector<std::size_t> extractor_sizes;  // of the dense layers, or the one size of the unit's state
    std::vector<std::size_t> hidden_sizes;
    std::string activation;  // "tanh" or "relu"
    std::string output;      // "clip": to [-1, 1]; "tanh": into it; "argmax": the place of the largest
    std::size_t observation_size = 0;
    std::size_t history_length = 0;
    std::size_t outputs = 0;  // coordinates of an action, or choices
};

}  // namespace quicgym::policy
