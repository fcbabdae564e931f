// The action space `rate`: window and pacing rate of the controller `external`, each times 2^a.
#include <algorithm>
#include <cmath>

#include "controllers/external.hpp"
#include "sim/environment/action_space.hpp"

namespace quicgym::environment {

namespace {

class RateActuator : public Actuator {
public:
    using Actuator::Actuator;
    std::unique_ptr<Actuator> clone() const override { return std::make_unique<RateActuator>(*this); }

    void apply(SteeredFlows& flows, const float* action) override {
        const ControllerSnapshot now = flows.snapshot(flow_);
        const double window =
            static_cast<double>(now.window_bytes) * std::exp2(static_cast<double>(action[0]));
        values_["window_bytes"].assign(1,
                                       std::clamp(window, kExternalSmallestWindow, kExternalLargestWindow));
        // Until an RTT is known the rate follows the window, which a guess would only hold up.
        if (now.round_trip_estimate > 0) {
            const double rate = now.pacing_rate * std::exp2(static_cast<double>(action[1]));
            values_["pacing_rate"].assign(1, std::clamp(rate, kExternalSlowestRate, kExternalFastestRate));
        }
        flows.set_parameters(flow_, values_);
        show(action);
    }
};

ActionSpace rate() {
    return {.name = "rate",
            .coordinates = {"window", "pacing_rate"},
            .choices = {},
            .is_relative = true,
            .make_actuator = [](const ActionSpace& space, std::size_t flow) -> std::unique_ptr<Actuator> {
                return std::make_unique<RateActuator>(space, flow);
            }};
}

const RegisteredActionSpace kRegistered(&rate);

}  // namespace

}  // namespace quicgym::environment
