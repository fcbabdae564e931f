// The action space `switch`: which member of the controller `switching` is active.
#include "controllers/catalogue.hpp"
#include "sim/environment/action_space.hpp"

namespace quicgym::environment {

namespace {

class SwitchActuator : public Actuator {
public:
    using Actuator::Actuator;

    void start(const Simulation& simulation) override {
        Actuator::start(simulation);
        const ParameterValues current = simulation.parameters(flow_);
        const auto found = current.find("active");
        if (found != current.end()) show_choice(static_cast<std::size_t>(found->second.front()));
    }

    void apply(Simulation& simulation, const float* action) override {
        const auto member = static_cast<std::size_t>(*action);
        if (shown_[member] == 1.0F) return;
        values_["active"].assign(1, static_cast<double>(member));
        simulation.set_parameters(flow_, values_);
        show_choice(member);
    }
};

ActionSpace switch_space() {
    return {.name = "switch",
            .coordinates = {"controller"},
            .choices = switching_members(),
            .make_actuator = [](const ActionSpace& space, std::size_t flow) -> std::unique_ptr<Actuator> {
                return std::make_unique<SwitchActuator>(space, flow);
            }};
}

const RegisteredActionSpace kRegistered(&switch_space);

}  // namespace

}  // namespace quicgym::environment
