// What a policy's network makes of an observation before its hidden layers.
#pragma once

#include <cstddef>
#include <memory>

#include "sim/policy/architecture.hpp"
#include "sim/policy/dense.hpp"

namespace quicgym::policy {

class Features {
public:
    virtual ~Features() = default;
    virtual std::size_t size() const = 0;
    // From an observation to `scratch.values`.
    virtual void extract(const float* observation, Scratch& scratch) const = 0;
};

// As quicgym.agents.policies.networks has them. Throws std::invalid_argument where the tensors do not fit.
std::unique_ptr<const Features> make_features(const Architecture& architecture, Tensors& tensors);

}  // namespace quicgym::policy
