// The network of a learned policy: from an observation to an action. It computes each row by itself and in
// one order, so that an action does not depend on what else is decided at that time.
#pragma once

#include <cstddef>
#include <optional>

#include "sim/policy/architecture.hpp"
#include "sim/policy/dense.hpp"
#include "sim/policy/lstm.hpp"

namespace quicgym::policy {

class Network {
public:
    // Throws std::invalid_argument where a name is unknown, or a tensor is missing, left over or does not
    // fit.
    Network(const Architecture& architecture, Tensors tensors);

    const Architecture& architecture() const { return architecture_; }
    bool chooses() const { return output_ == Output::argmax; }
    // Whether the output depends on earlier observations of the flow, through Scratch::state.
    bool is_recurrent() const { return lstm_.has_value(); }
    // To `scratch.values`: the coordinates, or the values by which choices are compared.
    void compute(const float* observation, Scratch& scratch) const;

private:
    enum class Output { clip, tanh, linear, argmax };

    Architecture architecture_;
    Activation activation_;
    Output output_;
    std::optional<Lstm> lstm_;
    DenseLayers features_;
    DenseLayers hidden_;
    Dense action_;
};

}  // namespace quicgym::policy
