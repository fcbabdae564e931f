// The action space `window`: the window of the controller `guided` is multiplied by 2^x, and an action is the
// place of x among the choices.
#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "controllers/external.hpp"
#include "sim/environment/action_space.hpp"

namespace quicgym::environment {

namespace {

constexpr std::array<double, 13> kExponents{-1.0,    -0.5,   -0.25, -0.125, -0.0625, -0.03125, 0.0,
                                            0.03125, 0.0625, 0.125, 0.25,   0.5,     1.0};

class WindowActuator : public Actuator {
public:
    using Actuator::Actuator;
    std::unique_ptr<Actuator> clone() const override { return std::make_unique<WindowActuator>(*this); }

    // Slow start is left alone: what it finds out is what the agent is to decide on.
    void apply(SteeredFlows& flows, const float* action) override {
        const auto factor = static_cast<std::size_t>(*action);
        show_choice(factor);
        const ControllerSnapshot now = flows.snapshot(flow_);
        if (now.mode == ControllerMode::slow_start) return;
        const double window = static_cast<double>(now.window_bytes) * std::exp2(kExponents[factor]);
        values_["window_bytes"].assign(1,
                                       std::clamp(window, kExternalSmallestWindow, kExternalLargestWindow));
        flows.set_parameters(flow_, values_);
    }
};

ActionSpace window() {
    ActionSpace space{
        .name = "window",
        .coordinates = {"factor"},
        .choices = {},
        .is_relative = true,
        .make_actuator = [](const ActionSpace& of, std::size_t flow) -> std::unique_ptr<Actuator> {
            return std::make_unique<WindowActuator>(of, flow);
        }};
    for (const double exponent : kExponents) {
        std::ostringstream text;
        text << std::showpos << exponent;
        space.choices.push_back(text.str());
    }
    return space;
}

const RegisteredActionSpace kRegistered(&window);

}  // namespace

}  // namespace quicgym::environment
