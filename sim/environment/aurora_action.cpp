// The action space `aurora`: the pacing rate of `external` is changed in proportion to the action, as in Jay
// et al., ICML 2019, section 3.1; nothing but the safe envelope bounds the window.
#include <algorithm>

#include "controllers/external.hpp"
#include "sim/environment/action_space.hpp"

namespace quicgym::environment {

namespace {

constexpr double kStep = 0.025;        // alpha there
constexpr double kLargestAction = 10;  // of the published policy's outputs: coordinates are a tenth of them

class AuroraActuator : public Actuator {
public:
    using Actuator::Actuator;
    std::unique_ptr<Actuator> clone() const override { return std::make_unique<AuroraActuator>(*this); }

    void apply(SteeredFlows& flows, const float* action) override {
        show(action);
        const ControllerSnapshot now = flows.snapshot(flow_);
        if (now.round_trip_estimate == 0) return;  // the rate is a guess yet
        const double step = kStep * kLargestAction * static_cast<double>(action[0]);
        const double rate = step >= 0.0 ? now.pacing_rate * (1.0 + step) : now.pacing_rate / (1.0 - step);
        values_["pacing_rate"].assign(1, std::clamp(rate, kExternalSlowestRate, kExternalFastestRate));
        values_["window_bytes"].assign(1, kExternalLargestWindow);
        flows.set_parameters(flow_, values_);
    }
};

ActionSpace aurora() {
    return {.name = "aurora",
            .coordinates = {"rate"},
            .choices = {},
            .is_relative = true,
            .make_actuator = [](const ActionSpace& space, std::size_t flow) -> std::unique_ptr<Actuator> {
                return std::make_unique<AuroraActuator>(space, flow);
            }};
}

const RegisteredActionSpace kRegistered(&aurora);

}  // namespace

}  // namespace quicgym::environment
