#include "sim/environment/parameter_mapping.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quicgym::environment {

namespace {

class MappedActuator : public Actuator {
public:
    MappedActuator(const ActionSpace& space, std::size_t flow) : Actuator(space, flow), space_(space) {}
    std::unique_ptr<Actuator> clone() const override { return std::make_unique<MappedActuator>(*this); }

    void start(const SteeredFlows& flows) override {
        const auto encoded = space_.encode(flows.parameters(flow_));
        if (!encoded) return;
        shown_ = *encoded;
        in_force_ = true;
    }

    // Parameters that have not changed are not set again.
    void apply(SteeredFlows& flows, const float* action) override {
        if (in_force_ && std::equal(shown_.begin(), shown_.end(), action)) return;
        space_.decode(action, values_);
        flows.set_parameters(flow_, values_);
        show(action);
        in_force_ = true;
    }

private:
    const ActionSpace& space_;
    bool in_force_ = false;  // what is shown is what the controller has
};

}  // namespace

std::unique_ptr<Actuator> make_mapped_actuator(const ActionSpace& space, std::size_t flow) {
    return std::make_unique<MappedActuator>(space, flow);
}

const std::vector<double>* numbers_of(const ParameterValues& values, const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : &found->second;
}

double number_of(const ParameterValues& values, const char* name) {
    const std::vector<double>* const found = numbers_of(values, name);
    return found == nullptr ? std::numeric_limits<double>::quiet_NaN() : found->front();
}

std::optional<std::vector<float>> as_coordinates(const std::vector<double>& numbers) {
    // Written so that NaN fails too.
    const auto fits = [](double number) { return std::abs(number) <= 1.0 + 1e-12; };
    if (!std::all_of(numbers.begin(), numbers.end(), fits)) return std::nullopt;
    std::vector<float> coordinates(numbers.size());
    std::transform(numbers.begin(), numbers.end(), coordinates.begin(),
                   [](double number) { return static_cast<float>(std::clamp(number, -1.0, 1.0)); });
    return coordinates;
}

}  // namespace quicgym::environment
