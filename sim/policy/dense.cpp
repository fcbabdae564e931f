#include "sim/policy/dense.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace quicgym::policy {

namespace {

constexpr double kLargestSum = 0x1p126;  // an LSTM adds two, and floats round

std::string in_brackets(const std::vector<std::size_t>& shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    return text + (shape.size() == 1 ? ",)" : ")");
}

void relu_each(std::vector<float>& values) {
    for (float& value : values) value = std::max(value, 0.0F);
}

// TensorFlow's default slope.
void leaky_relu_each(std::vector<float>& values) {
    for (float& value : values) value = std::max(value, 0.2F * value);
}

}  // namespace

Tensor Tensors::take(const std::string& name, const std::vector<std::size_t>& shape) {
    auto node = tensors_.extract(name);
    if (node.empty()) {
        throw std::invalid_argument("has no tensor '" + name + "', which the architecture needs");
    }
    Tensor& tensor = node.mapped();
    if (tensor.shape != shape) {
        throw std::invalid_argument("tensor '" + name + "' has the shape " + in_brackets(tensor.shape) +
                                    "; the architecture needs " + in_brackets(shape));
    }
    for (const float value : tensor.values) {
        if (!std::isfinite(value)) {
            throw std::invalid_argument("tensor '" + name + "' has values that are not finite");
        }
    }
    return std::move(tensor);
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
    if (name == "leaky-relu") return &leaky_relu_each;
    throw std::invalid_argument("activation = '" + name + "'; use tanh, relu or leaky-relu");
}

Dense::Dense(Tensors& tensors, const std::string& weight, const std::string& bias, std::size_t inputs,
             std::size_t outputs, double largest_input)
    : inputs_(inputs) {
    const Tensor weights = tensors.take(weight, {outputs, inputs});
    bias_ = tensors.take(bias, {outputs}).values;
    weights_.resize(weights.values.size());
    for (std::size_t out = 0; out < outputs; ++out) {
        double largest = std::abs(bias_[out]);
        for (std::size_t in = 0; in < inputs; ++in) {
            const float value = weights.values[out * inputs + in];
            weights_[in * outputs + out] = value;
            largest += std::abs(value) * largest_input;
        }
        largest_output_ = std::max(largest_output_, largest);
    }
    if (largest_output_ > kLargestSum) {
        throw std::invalid_argument("tensor '" + weight +
                                    "' has values so large that a sum may not be finite");
    }
}

// Four inputs in one pass over the sums, added one after the other: the result is that of one at a time.
void Dense::add_to(float* sums, const float* inputs) const {
    const std::size_t count = outputs();
    for (std::size_t out = 0; out < count; ++out) sums[out] += bias_[out];
    const float* weights = weights_.data();
    std::size_t in = 0;
    for (; in + 4 <= inputs_; in += 4, weights += 4 * count) {
        const float *const second = weights + count, *const third = second + count,
                           *const fourth = third + count;
        const float a = inputs[in], b = inputs[in + 1], c = inputs[in + 2], d = inputs[in + 3];
        for (std::size_t out = 0; out < count; ++out) {
            sums[out] = sums[out] + weights[out] * a + second[out] * b + third[out] * c + fourth[out] * d;
        }
    }
    for (; in < inputs_; ++in, weights += count) {
        for (std::size_t out = 0; out < count; ++out) sums[out] += weights[out] * inputs[in];
    }
}

void Dense::apply(Scratch& scratch) const {
    scratch.next.assign(outputs(), 0.0F);
    add_to(scratch.next.data(), scratch.values.data());
    scratch.values.swap(scratch.next);
}

DenseLayers::DenseLayers(Tensors& tensors, const std::string& name, std::size_t inputs,
                         const std::vector<std::size_t>& sizes, Activation activation, double largest_input)
    : outputs_(inputs), largest_output_(largest_input), activate_(activation) {
    std::size_t place = 0;
    for (const std::size_t size : sizes) {
        layers_.emplace_back(tensors, name + "." + std::to_string(place), outputs_, size, largest_output_);
        outputs_ = size;
        largest_output_ = activation == &tanh_each ? 1.0 : layers_.back().largest_output();
        place += 2;  // every second place is the activation's
    }
}

void DenseLayers::apply(Scratch& scratch) const {
    for (const Dense& layer : layers_) {
        layer.apply(scratch);
        activate_(scratch.values);
    }
}

}  // namespace quicgym::policy
