#include "sim/policy/lstm.hpp"

#include <cmath>
#include <vector>

namespace quicgym::policy {

namespace {

float sigmoid(float value) {
    return 1.0F / (1.0F + std::exp(-value));
}

}  // namespace

void Lstm::apply(const float* observation, Scratch& scratch) const {
    scratch.state.resize(2 * size_);
    float* const output = scratch.state.data();
    float* const cell = output + size_;
    std::vector<float>& sums = scratch.next;
    sums.assign(4 * size_, 0.0F);
    from_observation_.add_to(sums.data(), observation);
    from_output_.add_to(sums.data(), output);
    for (std::size_t i = 0; i < size_; ++i) {
        const float input = sigmoid(sums[i]);
        const float forget = sigmoid(sums[size_ + i]);
        const float candidate = std::tanh(sums[2 * size_ + i]);
        cell[i] = forget * cell[i] + input * candidate;
        output[i] = std::tanh(cell[i]) * sigmoid(sums[3 * size_ + i]);
    }
    scratch.values.assign(output, output + size_);
}

}  // namespace quicgym::policy
