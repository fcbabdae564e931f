// A recurrent layer: long short-term memory (LSTM).
#pragma once

#include <cstddef>
#include <string>

#include "sim/policy/dense.hpp"

namespace quicgym::policy {

// With PyTorch's names and its order of gates: input, forget, cell, output.
class Lstm {
public:
    static constexpr double kLargestOutput = 1.0;  // a gate's share of a tanh

    // Takes NAME.weight_ih_l0, NAME.weight_hh_l0 and their biases.
    Lstm(Tensors& tensors, const std::string& name, std::size_t inputs, std::size_t size,
         double largest_input)
        : size_(size),
          from_observation_(tensors, name + ".weight_ih_l0", name + ".bias_ih_l0", inputs, 4 * size,
                            largest_input),
          from_output_(tensors, name + ".weight_hh_l0", name + ".bias_hh_l0", size, 4 * size,
                       kLargestOutput) {}

    // From an observation and `scratch.state`, which moves on, to `scratch.values`.
    void apply(const float* observation, Scratch& scratch) const;

private:
    std::size_t size_;
    Dense from_observation_;
    Dense from_output_;
};

}  // namespace quicgym::policy
