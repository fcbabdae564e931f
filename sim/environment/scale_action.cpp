// The action spaces `scale` and `orca`: window and pacing rate of any controller, each times 4^a. In `scale`
// each has its coordinate, in `orca` one is for both (Abbasloo et al., SIGCOMM 2020, equation 3). The
// controller decides on as it would; at 0 it is alone.
#include <cmath>

#include "controllers/scaled.hpp"
#include "sim/environment/action_space.hpp"

namespace quicgym::environment {

namespace {

class ScaleActuator : public Actuator {
public:
    using Actuator::Actuator;
    std::unique_ptr<Actuator> clone() const override { return std::make_unique<ScaleActuator>(*this); }

    void apply(SteeredFlows& flows, const float* action) override {
        if (std::equal(shown_.begin(), shown_.end(), action)) return;
        values_[kWindowFactor].assign(1, factor(action[0]));
        values_[kPacingFactor].assign(1, factor(action[shown_.size() - 1]));
        flows.set_parameters(flow_, values_);
        show(action);
    }

private:
    static double factor(float coordinate) { return std::pow(4.0, static_cast<double>(coordinate)); }
};

ActionSpace space_of(const char* name, std::vector<std::string> coordinates) {
    return {.name = name,
            .coordinates = std::move(coordinates),
            .choices = {},
            .make_actuator = [](const ActionSpace& space, std::size_t flow) -> std::unique_ptr<Actuator> {
                return std::make_unique<ScaleActuator>(space, flow);
            }};
}

std::vector<ActionSpace> spaces() {
    return {space_of("scale", {"window", "pacing_rate"}), space_of("orca", {"window"})};
}

const RegisteredActionSpace kRegistered(&spaces);

}  // namespace

}  // namespace quicgym::environment
