// What an agent sees: features that a real sender can measure, finite and bounded.
//
// There are several layouts: `spans` (span_observation.hpp), `frames` of Window-v0 (frame_observation.hpp),
// and those of papers: `aurora` and `orca`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulation.hpp"

namespace quicgym::environment {

enum class ObservationLayout : std::uint8_t { frames, spans, aurora, orca };

// An element of an observation.
struct Element {
    std::string name;
    float minimum;
    float maximum;
};

struct BoundedFeature {
    std::string_view name;
    float minimum;
    float maximum;
    std::string_view description;
};

// 0 where the denominator is not known yet.
inline double ratio(double numerator, double denominator) {
    return denominator > 0.0 ? numerator / denominator : 0.0;
}

inline float bounded(double value, const BoundedFeature& feature) {
    return static_cast<float>(
        std::clamp(value, static_cast<double>(feature.minimum), static_cast<double>(feature.maximum)));
}

// The mean of the RTT samples between two states; `otherwise` without one.
inline double mean_rtt_seconds(const FlowState& before, const FlowState& now, double otherwise) {
    const std::uint64_t samples = now.rtt_samples - before.rtt_samples;
    return samples > 0 ? (now.rtt_sum_seconds - before.rtt_sum_seconds) / static_cast<double>(samples)
                       : otherwise;
}

// Follows one flow through an episode.
class Observer {
public:
    virtual ~Observer() = default;
    virtual std::unique_ptr<Observer> clone() const = 0;

    // The state when the episode begins.
    virtual void start(const FlowState& state) = 0;
    // The state after a decision interval. `gamma`, in packets, is infinite or NaN where the controller has
    // none.
    virtual void update(const FlowState& state, double gamma) = 0;
    // As many numbers as the layout has elements.
    virtual void write(float* out) const = 0;
};

std::unique_ptr<Observer> make_observer(ObservationLayout layout, std::size_t history_length,
                                        std::uint64_t max_datagram_bytes);

// What an Observer writes, in order.
std::vector<Element> observation_elements(ObservationLayout layout, std::size_t history_length);

// Their number, without making them: every episode asks for it.
std::size_t observation_size(ObservationLayout layout, std::size_t history_length);

inline constexpr std::size_t kModes = 7;
inline constexpr const char* kModeNames[kModes] = {
    "slow_start", "congestion_avoidance", "recovery", "startup", "drain", "probe_bw", "probe_rtt"};

}  // namespace quicgym::environment
