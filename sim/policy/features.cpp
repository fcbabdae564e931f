#include "sim/policy/features.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/environment/doubling_spans.hpp"
#include "sim/environment/frames_observation.hpp"

namespace quicgym::policy {

namespace {

using environment::kFrameFeatures;

constexpr std::size_t kFrame = kFrameFeatures.size();

constexpr std::size_t place_of(std::string_view feature) {
    std::size_t place = 0;
    while (kFrameFeatures[place].name != feature) ++place;
    return place;
}

class MlpFeatures : public Features {
public:
    MlpFeatures(const Architecture& architecture, Tensors& tensors)
        : observation_size_(architecture.observation_size),
          layers_(tensors, "features.layers", observation_size_, architecture.extractor_sizes,
                  find_activation(architecture.activation)) {}

    std::size_t size() const override { return layers_.outputs(); }

    void extract(const float* observation, Scratch& scratch) const override {
        scratch.values.assign(observation, observation + observation_size_);
        layers_.apply(scratch);
    }

private:
    std::size_t observation_size_;
    DenseLayers layers_;
};

// Of frames, the oldest first: the first of a span and the one after its last.
std::vector<std::pair<std::size_t, std::size_t>> spans_of_frames(std::size_t length) {
    std::vector<std::pair<std::size_t, std::size_t>> spans;
    environment::for_each_doubling_span(length, [&](const environment::DoublingSpan& span) {
        spans.emplace_back(length - span.last, length - span.first);
    });
    return spans;
}

class MultiScaleFeatures : public Features {
public:
    MultiScaleFeatures(const Architecture& architecture, Tensors& tensors)
        : observation_size_(architecture.observation_size),
          history_size_(architecture.history_length * kFrame),
          spans_(spans_of_frames(architecture.history_length)),
          layers_(tensors, "features.layers", spans_.size() * kFrame + observation_size_ - history_size_,
                  architecture.extractor_sizes, find_activation(architecture.activation)) {}

    std::size_t size() const override { return layers_.outputs(); }

    void extract(const float* observation, Scratch& scratch) const override {
        scratch.values.clear();
        for (const auto& [first, last] : spans_) {
            std::array<float, kFrame> means{};
            for (std::size_t frame = first; frame < last; ++frame) {
                for (std::size_t i = 0; i < kFrame; ++i) means[i] += observation[frame * kFrame + i];
            }
            for (float& mean : means) mean /= static_cast<float>(last - first);
            for (const std::size_t i : kRatios) means[i] = std::log2(means[i] + 0x1p-5F);
            means[kLoss] = 3.0F * std::sqrt(means[kLoss]);
            scratch.values.insert(scratch.values.end(), means.begin(), means.end());
        }
        scratch.values.insert(scratch.values.end(), observation + history_size_,
                              observation + observation_size_);
        layers_.apply(scratch);
    }

private:
    static constexpr std::array kRatios{place_of("send_rate"), place_of("pacing_rate"), place_of("rtt"),
                                        place_of("in_flight"), place_of("window")};
    static constexpr std::size_t kLoss = place_of("loss");

    std::size_t observation_size_;
    std::size_t history_size_;
    std::vector<std::pair<std::size_t, std::size_t>> spans_;
    DenseLayers layers_;
};

float sigmoid(float value) {
    return 1.0F / (1.0F + std::exp(-value));
}

// A gated recurrent unit over the frames, the oldest first, with PyTorch's names and its order of gates:
// reset, update, new.
class GruFeatures : public Features {
public:
    GruFeatures(const Architecture& architecture, Tensors& tensors)
        : observation_size_(architecture.observation_size),
          history_length_(architecture.history_length),
          state_size_(architecture.extractor_sizes.front()),
          from_frame_(tensors, "features.unit.weight_ih_l0", "features.unit.bias_ih_l0", kFrame,
                      3 * state_size_),
          from_state_(tensors, "features.unit.weight_hh_l0", "features.unit.bias_hh_l0", state_size_,
                      3 * state_size_) {}

    std::size_t size() const override { return state_size_ + observation_size_ - history_length_ * kFrame; }

    void extract(const float* observation, Scratch& scratch) const override {
        std::vector<float>& state = scratch.values;
        const float* const rest = observation + history_length_ * kFrame;
        state.assign(state_size_, 0.0F);
        scratch.next.resize(6 * state_size_);
        float* const from_frame = scratch.next.data();
        float* const from_state = from_frame + 3 * state_size_;
        for (; observation != rest; observation += kFrame) {
            std::fill(scratch.next.begin(), scratch.next.end(), 0.0F);
            from_frame_.add_to(from_frame, observation);
            from_state_.add_to(from_state, state.data());
            for (std::size_t i = 0; i < state_size_; ++i) {
                const std::size_t update_at = state_size_ + i, new_at = 2 * state_size_ + i;
                const float reset = sigmoid(from_frame[i] + from_state[i]);
                const float update = sigmoid(from_frame[update_at] + from_state[update_at]);
                const float renewed = std::tanh(from_frame[new_at] + reset * from_state[new_at]);
                state[i] = (1.0F - update) * renewed + update * state[i];
            }
        }
        state.insert(state.end(), rest, rest + (observation_size_ - history_length_ * kFrame));
    }

private:
    std::size_t observation_size_;
    std::size_t history_length_;
    std::size_t state_size_;
    Dense from_frame_;
    Dense from_state_;
};

}  // namespace

std::unique_ptr<const Features> make_features(const Architecture& architecture, Tensors& tensors) {
    if (architecture.extractor_sizes.empty()) throw std::invalid_argument("extractor_sizes = []; give one");
    if (architecture.extractor == "mlp") return std::make_unique<MlpFeatures>(architecture, tensors);
    if (architecture.history_length == 0 ||
        architecture.observation_size < architecture.history_length * kFrame) {
        throw std::invalid_argument("an observation of " + std::to_string(architecture.observation_size) +
                                    " numbers has no " + std::to_string(architecture.history_length) +
                                    " frames");
    }
    if (architecture.extractor == "gru") return std::make_unique<GruFeatures>(architecture, tensors);
    if (architecture.extractor == "multi-scale") {
        return std::make_unique<MultiScaleFeatures>(architecture, tensors);
    }
    throw std::invalid_argument("extractor = '" + architecture.extractor + "'; use mlp, gru or multi-scale");
}

}  // namespace quicgym::policy
