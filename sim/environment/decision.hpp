// When an agent decides, and what it sees then: the same in a simulation and in another sender.
#pragma once

#include <algorithm>
#include <cmath>

#include "controllers/controller.hpp"
#include "sim/base/time.hpp"
#include "sim/environment/action_space.hpp"
#include "sim/environment/observation.hpp"

namespace quicgym::environment {

// From one decision to the next.
struct DecisionInterval {
    Time time = 100 * kMillisecond;
    double rtts = 0.0;  // so many smoothed RTTs, where they are longer

    // `smoothed_rtt` is 0 before the first sample.
    Time after(Time smoothed_rtt) const {
        if (rtts <= 0.0) return time;
        const Time rtt = smoothed_rtt > 0 ? smoothed_rtt : kInitialRtt;
        return std::max<Time>(time, std::llround(rtts * static_cast<double>(rtt)));
    }
    bool operator==(const DecisionInterval&) const = default;
};

// An observation: what the layout has, and the action in force.
inline std::size_t observation_size(const ObservationLayout& layout, std::size_t history_length,
                                    const ActionSpace& space) {
    return layout.elements(history_length).size() + space.shown_size();
}

// Returns the end of what it wrote.
inline float* write_observation(const Observer& observer, const Actuator& actuator, float* out) {
    out = observer.write(out);
    return std::copy(actuator.shown().begin(), actuator.shown().end(), out);
}

}  // namespace quicgym::environment
