// What a policy's network makes of an observation before its hidden layers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "sim/policy/dense.hpp"

namespace quicgym::policy {

class Features {
public:
    virtual ~Features() = default;
    virtual std::size_t size() const = 0;
    // From an observation to `scratch.values`.
    virtual void extract(const float* observation, Scratch& scratch) const = 0;
};

// `extractor`: "mlp", "gru" or "multi-scale", as quicgym.agents.policies.networks has them. Throws
// std::invalid_argument where the tensors do not fit.
std::unique_ptr<const Features> make_features(const std::string& extractor, Tensors& tensors,
                                              std::size_t observation_size, std::size_t history_length,
                                              Activation activation);

}  // namespace quicgym::policy
