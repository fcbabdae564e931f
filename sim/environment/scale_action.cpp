// The action space `scale`: window and pacing rate of any controller, each times 4^a. The controller decides
// on as it would; at 0 it is alone.
#include <cmath>

#include "controllers/scaled.hpp"
#include "sim/environment/action_space.hpp"

namespace quicgym::environment {

namespace {

class ScaleActuator : public Actuator {
public:
    using Actuator::Actuator;
    std::unique_ptr<Actuator> clone() const override { return std::make_unique<ScaleActuator>(*this); }

    void start(const Simulation& simulation) override {
        Actuator::start(simulation);
        values_ = {{kWindowFactor, {1.0}}, {kPacingFactor, {1.0}}};
    }

    void apply(Simulation& simulation, const float* action) override {
        if (std::equal(shown_.begin(), shown_.end(), action)) return;
        values_[kWindowFactor].front() = std::pow(4.0, static_cast<double>(action[0]));
        values_[kPacingFactor].front() = std::pow(4.0, static_cast<double>(action[1]));
        simulation.set_parameters(flow_, values_);
        show(action);
    }
};

ActionSpace scale() {
    return {.name = "scale",
            .coordinates = {"window", "pacing_rate"},
            .choices = {},
            .make_actuator = [](const ActionSpace& space, std::size_t flow) -> std::unique_ptr<Actuator> {
                return std::make_unique<ScaleActuator>(space, flow);
            }};
}

const RegisteredActionSpace kRegistered(&scale);

}  // namespace

}  // namespace quicgym::environment
