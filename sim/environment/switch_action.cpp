// The action space `switch`: which member of the controller `switching` is active.
#include <algorithm>

#include "controllers/catalogue.hpp"
#include "sim/environment/action_space.hpp"

namespace quicgym::environment {

namespace {

class SwitchActuator : public Actuator {
public:
    using Actuator::Actuator;
    std::unique_ptr<Actuator> clone() const override { return std::make_unique<SwitchActuator>(*this); }

    void start(const SteeredFlows& flows) override {
        const ParameterValues current = flows.parameters(flow_);
        const auto found = current.find("active");
        if (found == current.end()) return;
        const auto member = static_cast<std::size_t>(found->second.front());
        if (member < shown_.size()) show_choice(member);
    }

    void apply(SteeredFlows& flows, const float* action) override {
        const auto member = static_cast<std::size_t>(*action);
        if (shown_[member] == 1.0F) return;
        values_["active"].assign(1, static_cast<double>(member));
        flows.set_parameters(flow_, values_);
        show_choice(member);
    }
};

// Published policies depend on the number of choices, so a later member is none of them.
constexpr std::size_t kChoices = 15;

ActionSpace switch_space() {
    const std::vector<std::string>& members = switching_members();
    return {.name = "switch",
            .coordinates = {"controller"},
            .choices = {members.begin(), members.begin() + std::min(kChoices, members.size())},
            .make_actuator = [](const ActionSpace& space, std::size_t flow) -> std::unique_ptr<Actuator> {
                return std::make_unique<SwitchActuator>(space, flow);
            }};
}

const RegisteredActionSpace kRegistered(&switch_space);

}  // namespace

}  // namespace quicgym::environment
