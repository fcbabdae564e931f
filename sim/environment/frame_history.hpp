// A history of frames, one for each decision interval, as the observations of papers have it.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/environment/observation.hpp"

namespace quicgym::environment {

// The oldest frame first; those before the episode are 0. `Derived` has `kFeatures` and
// void values(const FlowState& before, const FlowState& now, double* out), whose results are cut off at the
// features' bounds.
template <class Derived>
class FrameHistory : public Observer {
public:
    FrameHistory(std::size_t history_length, std::uint64_t max_datagram_bytes)
        : max_datagram_bytes_(static_cast<double>(max_datagram_bytes)),
          history_(history_length * Derived::kFeatures.size()) {}

    std::unique_ptr<Observer> clone() const override {
        return std::make_unique<Derived>(static_cast<const Derived&>(*this));
    }
    void start(const FlowState& state) override { previous_ = state; }
    void update(const FlowState& state) override {
        constexpr std::size_t kSize = Derived::kFeatures.size();
        std::array<double, kSize> values{};
        static_cast<Derived&>(*this).values(previous_, state, values.data());
        std::move(history_.begin() + kSize, history_.end(), history_.begin());
        for (std::size_t i = 0; i < kSize; ++i) {
            history_[history_.size() - kSize + i] = bounded(values[i], Derived::kFeatures[i]);
        }
        previous_ = state;
    }
    float* write(float* out) const override { return std::copy(history_.begin(), history_.end(), out); }

    static std::vector<Element> elements(std::size_t history_length) {
        std::vector<Element> elements;
        for (std::size_t age = history_length; age-- > 0;) {
            for (const BoundedFeature& feature : Derived::kFeatures) {
                elements.push_back({std::string(feature.name) + "[" + std::to_string(age) + "]",
                                    std::min(feature.minimum, 0.0F), feature.maximum});
            }
        }
        return elements;
    }

protected:
    double max_datagram_bytes_;

private:
    FlowState previous_;
    std::vector<float> history_;
};

}  // namespace quicgym::environment
