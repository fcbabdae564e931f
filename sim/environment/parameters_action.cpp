// The action spaces `tuning:CONTROLLER`: all parameters of a controller, each number of them a coordinate
// over its range and scale of the catalogue. One for each of quicgym's own controllers that decides by
// itself.
#include <string>
#include <vector>

#include "controllers/parameter_scale.hpp"
#include "sim/environment/action_space.hpp"

namespace quicgym::environment {

namespace {

constexpr char kPrefix[] = "tuning:";

const std::vector<ParameterSpecification>& parameters_of(const ActionSpace& space) {
    return find_controller(space.name.substr(sizeof(kPrefix) - 1)).parameters;
}

class ParametersActuator : public Actuator {
public:
    ParametersActuator(const ActionSpace& space, std::size_t flow)
        : Actuator(space, flow), parameters_(parameters_of(space)) {}
    std::unique_ptr<Actuator> clone() const override { return std::make_unique<ParametersActuator>(*this); }

    void start(const SteeredFlows& flows) override {
        const ParameterValues current = flows.parameters(flow_);
        std::vector<float> coordinates;
        for (const ParameterSpecification& parameter : parameters_) {
            const auto found = current.find(parameter.name);
            // Another controller in the agent's place, or a list of another length.
            if (found == current.end() || found->second.size() != parameter.default_value.size()) return;
            for (const double number : found->second) {
                coordinates.push_back(static_cast<float>(coordinate_of(parameter, number)));
            }
        }
        show(coordinates.data());
        in_force_ = true;
    }

    // Parameters that have not changed are not set again.
    void apply(SteeredFlows& flows, const float* action) override {
        if (in_force_ && std::equal(shown_.begin(), shown_.end(), action)) return;
        const float* coordinate = action;
        for (const ParameterSpecification& parameter : parameters_) {
            std::vector<double>& numbers = values_[parameter.name];
            numbers.resize(parameter.default_value.size());
            for (double& number : numbers) number = value_at(parameter, static_cast<double>(*coordinate++));
        }
        flows.set_parameters(flow_, values_);
        show(action);
        in_force_ = true;
    }

private:
    const std::vector<ParameterSpecification>& parameters_;
    bool in_force_ = false;  // what is shown is what the controller has
};

bool is_tunable(const CatalogueEntry& entry) {
    const auto& parameters = entry.specification.parameters;
    return !entry.listing.steered && !parameters.empty() &&
           std::all_of(parameters.begin(), parameters.end(), has_coordinate);
}

std::vector<ActionSpace> spaces_of_the_catalogue() {
    std::vector<ActionSpace> spaces;
    for (const CatalogueEntry& entry : catalogue()) {
        if (!is_tunable(entry)) continue;
        ActionSpace space{
            .name = kPrefix + entry.specification.name,
            .coordinates = {},
            .choices = {},
            .make_actuator = [](const ActionSpace& of, std::size_t flow) -> std::unique_ptr<Actuator> {
                return std::make_unique<ParametersActuator>(of, flow);
            }};
        for (const ParameterSpecification& parameter : entry.specification.parameters) {
            for (std::size_t place = 1; place <= parameter.default_value.size(); ++place) {
                space.coordinates.push_back(parameter.is_list ? parameter.name + "_" + std::to_string(place)
                                                              : parameter.name);
            }
        }
        spaces.push_back(std::move(space));
    }
    return spaces;
}

const RegisteredActionSpace kRegistered(&spaces_of_the_catalogue);

}  // namespace

}  // namespace quicgym::environment
