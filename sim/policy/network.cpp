#include "sim/policy/network.hpp"

#include <algorithm>
#include <stdexcept>

namespace quicgym::policy {

namespace {

constexpr double kLargestObservation = 1e9;  // more than any feature's bound, or an agent's measurement

std::optional<Lstm> lstm_of(const Architecture& architecture, Tensors& tensors) {
    if (architecture.lstm_size == 0) return std::nullopt;
    return Lstm(tensors, "lstm", architecture.observation_size, architecture.lstm_size, kLargestObservation);
}

}  // namespace

Network::Network(const Architecture& architecture, Tensors tensors)
    : architecture_(architecture),
      activation_(find_activation(architecture.activation)),
      lstm_(lstm_of(architecture, tensors)),
      features_(tensors, "features.layers", lstm_ ? architecture.lstm_size : architecture.observation_size,
                architecture.extractor_sizes, activation_,
                lstm_ ? Lstm::kLargestOutput : kLargestObservation),
      hidden_(tensors, "hidden", features_.outputs(), architecture.hidden_sizes, activation_,
              features_.largest_output()),
      action_(tensors, "action", hidden_.outputs(), architecture.outputs, hidden_.largest_output()) {
    tensors.check_all_taken();
    if (architecture.output == "clip") {
        output_ = Output::clip;
    } else if (architecture.output == "tanh") {
        output_ = Output::tanh;
    } else if (architecture.output == "linear") {
        output_ = Output::linear;
    } else if (architecture.output == "argmax") {
        output_ = Output::argmax;
    } else {
        throw std::invalid_argument("output = '" + architecture.output +
                                    "'; use clip, tanh, linear or argmax");
    }
}

void Network::compute(const float* observation, Scratch& scratch) const {
    if (lstm_) {
        lstm_->apply(observation, scratch);
    } else {
        scratch.values.assign(observation, observation + architecture_.observation_size);
    }
    features_.apply(scratch);
    hidden_.apply(scratch);
    action_.apply(scratch);
    if (output_ == Output::tanh) tanh_each(scratch.values);
    if (output_ == Output::clip) {
        for (float& value : scratch.values) value = std::clamp(value, -1.0F, 1.0F);
    }
}

}  // namespace quicgym::policy
