#include "sim/policy/dense.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace quicgym::policy {

namespace {

[[noreturn]] void refuse_shape(const std::string& name) {
    throw std::invalid_argument("tensor '" + name + "' has another shape than the architecture needs");
}

void relu_each(std::vector<float>& values) {
    for (float& value : values) value = std::max(value, 0.0F);
}

}  // namespace

Tensor Tensors::take_of_rank(const std::string& name, std::size_t dimensions) {
    auto node = tensors_.extract(name);
    if (node.empty()) throw std::invalid_argument("has no tensor '" + name + "'");
    Tensor& tensor = node.mapped();
    const std::size_t size =
        std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::size_t{1}, std::multiplies<>());
    if (tensor.shape.size() != dimensions || size == 0 || size != tensor.values.size()) refuse_shape(name);
    return std::move(tensor);
}

Tensor Tensors::take(const std::string& name, const std::vector<std::size_t>& shape) {
    Tensor tensor = take_of_rank(name, shape.size());
    if (tensor.shape != shape) refuse_shape(name);
    return tensor;
}

void Tensors::check_all_taken() const {
    if (tensors_.empty()) return;
    throw std::invalid_argument("tensor '" + tensors_.begin()->first + "' is not in the architecture");
}

void tanh_each(std::vector<float>& values) {
    for (float& value : values) value = std::tanh(value);
}

Activation find_activation(const std::string& name) {
    if (name == "tanh") return &tanh_each;
    if (name == "relu") return &relu_each;
    throw std::invalid_argument("activation = '" + name + "'; use tanh or relu");
}

Dense::Dense(Tensors& tensors, const std::string& weight, const std::string& bias, std::size_t inputs)
    : inputs_(inputs) {
    const Tensor weights = tensors.take_of_rank(weight, 2);
    if (weights.shape[1] != inputs) refuse_shape(weight);
    bias_ = tensors.take(bias, {weights.shape[0]}).values;
    weights_.resize(weights.values.size());
    for (std::size_t out = 0; out < outputs(); ++out) {
        for (std::size_t in = 0; in < inputs; ++in) {
            weights_[in * outputs() + out] = weights.values[out * inputs + in];
        }
    }
}

void Dense::add_to(float* sums, const float* inputs) const {
    const std::size_t count = outputs();
    for (std::size_t out = 0; out < count; ++out) sums[out] += bias_[out];
    for (std::size_t in = 0; in < inputs_; ++in) {
        const float* const weights = weights_.data() + in * count;
        const float input = inputs[in];
        for (std::size_t out = 0; out < count; ++out) sums[out] += weights[out] * input;
    }
}

void Dense::apply(Scratch& scratch) const {
    scratch.next.assign(outputs(), 0.0F);
    add_to(scratch.next.data(), scratch.values.data());
    scratch.values.swap(scratch.next);
}

DenseLayers::DenseLayers(Tensors& tensors, const std::string& name, std::size_t inputs, Activation activation)
    : outputs_(inputs), activate_(activation) {
    for (std::size_t place = 0;; place += 2) {  // every second place is the activation's
        const std::string layer = name + "." + std::to_string(place);
        if (!tensors.has(layer + ".weight")) return;
        outputs_ = layers_.emplace_back(tensors, layer, outputs_).outputs();
    }
}

void DenseLayers::apply(Scratch& scratch) const {
    for (const Dense& layer : layers_) {
        layer.apply(scratch);
        activate_(scratch.values);
    }
}

}  // namespace quicgym::policy
