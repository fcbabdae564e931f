// Dense layers and the tensors that they are made of.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace quicgym::policy {

// A tensor in row-major order, as in safetensors.
struct Tensor {
    std::vector<std::size_t> shape;
    std::vector<float> values;
};

// A policy's weights, each taken once by name. All errors are std::invalid_argument.
class Tensors {
public:
    explicit Tensors(std::map<std::string, Tensor> tensors) : tensors_(std::move(tensors)) {}

    Tensor take(const std::string& name, const std::vector<std::size_t>& shape);
    // Throws if a tensor is left that the architecture does not name.
    void check_all_taken() const;

private:
    std::map<std::string, Tensor> tensors_;
};

using Activation = void (*)(std::vector<float>&);
void tanh_each(std::vector<float>& values);
Activation find_activation(const std::string& name);

// Memory that a caller keeps between calls, so that no call allocates.
struct Scratch {
    std::vector<float> values;  // what the layers pass on
    std::vector<float> next;
    // Output and cell of an LSTM, kept from one observation of a flow to the next. Empty stands for zeros.
    std::vector<float> state;
};

// y = W x + b.
class Dense {
public:
    // Takes the weights, of shape (outputs, inputs), and the bias. Throws where inputs of up to
    // `largest_input` may give a sum beyond what a float holds: with infinities of both signs it is no
    // number.
    Dense(Tensors& tensors, const std::string& weight, const std::string& bias, std::size_t inputs,
          std::size_t outputs, double largest_input);
    Dense(Tensors& tensors, const std::string& name, std::size_t inputs, std::size_t outputs,
          double largest_input)
        : Dense(tensors, name + ".weight", name + ".bias", inputs, outputs, largest_input) {}

    std::size_t outputs() const { return bias_.size(); }
    double largest_output() const { return largest_output_; }
    void add_to(float* sums, const float* inputs) const;
    // Puts the outputs in the place of the inputs.
    void apply(Scratch& scratch) const;

private:
    std::size_t inputs_;
    std::vector<float> weights_;  // (inputs, outputs): the inner loop runs over neighbours
    std::vector<float> bias_;
    double largest_output_ = 0.0;
};

// Layers with the activation after each; none: what comes in goes out.
class DenseLayers {
public:
    // Takes `name`.0, `name`.2 and so on, with these numbers of outputs.
    DenseLayers(Tensors& tensors, const std::string& name, std::size_t inputs,
                const std::vector<std::size_t>& sizes, Activation activation, double largest_input);

    std::size_t outputs() const { return outputs_; }
    double largest_output() const { return largest_output_; }
    void apply(Scratch& scratch) const;

private:
    std::vector<Dense> layers_;
    std::size_t outputs_;
    double largest_output_;
    Activation activate_;
};

}  // namespace quicgym::policy
