// The observations of agents: features that a real sender can measure, finite and bounded.
//
// A file of this folder adds a layout by registering it; nothing else names it. See spans_observation.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulation.hpp"

namespace quicgym::environment {

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
    // The state after a decision interval.
    virtual void update(const FlowState& state) = 0;
    // Writes the layout's elements. Returns the end of what it wrote.
    virtual float* write(float* out) const = 0;
};

// The layout of the numbers that observers of one kind write.
struct ObservationLayout {
    std::string_view name;
    // In the order of writing, for a history of so many decisions.
    std::vector<Element> (*elements)(std::size_t history_length);
    std::unique_ptr<Observer> (*make_observer)(std::size_t history_length, std::uint64_t max_datagram_bytes);
};

// Every layout, sorted by name.
const std::vector<ObservationLayout>& observation_layouts();

// Throws std::invalid_argument that lists the names.
const ObservationLayout& find_observation_layout(std::string_view name);

void register_layout(const ObservationLayout& layout);

// A constant of this type at namespace scope registers the layout of an Observer's class. The class is made
// from the arguments of `make_observer`, and has the static function `elements`.
template <class Observing>
class RegisteredObservationLayout {
public:
    explicit RegisteredObservationLayout(std::string_view name) {
        register_layout(
            {name, &Observing::elements,
             [](std::size_t history_length, std::uint64_t max_datagram_bytes) -> std::unique_ptr<Observer> {
                 return std::make_unique<Observing>(history_length, max_datagram_bytes);
             }});
    }
};

// The elements that say in which mode the controller is: 1 in the mode's place, else 0.
void add_mode_elements(std::vector<Element>& elements);
float* write_modes(ControllerMode mode, float* out);

}  // namespace quicgym::environment
