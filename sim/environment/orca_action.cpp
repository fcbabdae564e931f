// The action space `orca`: one factor, 4^a, for window and pacing rate of any controller, as in Abbasloo et
// al., SIGCOMM 2020, equation 3.
#include <algorithm>
#include <cmath>

#include "controllers/scaled.hpp"
#include "sim/environment/action_space.hpp"

namespace quicgym::environment {

namespace {

class OrcaActuator : public Actuator {
public:
    using Actuator::Actuator;
    std::unique_ptr<Actuator> clone() const override { return std::make_unique<OrcaActuator>(*this); }

    void apply(Simulation& simulation, const float* action) override {
        if (*action == shown_.front()) return;
        const double factor = std::pow(4.0, static_cast<double>(*action));
        values_[kWindowFactor].assign(1, factor);
        values_[kPacingFactor].assign(1, factor);
        simulation.set_parameters(flow_, values_);
        show(action);
    }
};

ActionSpace orca() {
    return {.name = "orca",
            .coordinates = {"window"},
            .choices = {},
            .make_actuator = [](const ActionSpace& space, std::size_t flow) -> std::unique_ptr<Actuator> {
                return std::make_unique<OrcaActuator>(space, flow);
            }};
}

const RegisteredActionSpace kRegistered(&orca);

}  // namespace

}  // namespace quicgym::environment
