// The layers and sizes of a policy's network.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace quicgym::policy {

// quicgym.agents.policies.architecture.Architecture, and what the environment adds.
struct Architecture {
    std::size_t lstm_size = 0;  // of the layer before all others, of other authors' agents; 0: none
    std::vector<std::size_t> extractor_sizes;  // of the first dense layers
    std::vector<std::size_t> hidden_sizes;
    std::string activation;  // "tanh" or "relu"; of other authors' agents "leaky-relu"
    std::string output;  // "clip": to [-1, 1]; "tanh": into it; "linear": as it is; "argmax": the place of
                         // the largest
    std::size_t observation_size = 0;
    std::size_t outputs = 0;  // coordinates of an action, or choices
};

}  // namespace quicgym::policy
