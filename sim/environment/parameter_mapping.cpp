#include "sim/environment/parameter_mapping.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

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

ActionSpace part_of(const ActionSpace& whole, const std::vector<std::string>& names) {
    ActionSpace part{
        .name = whole.name + "[", .coordinates = {}, .choices = {}, .make_actuator = make_mapped_actuator};
    if (!whole.decode || whole.size() > kMostCoordinates) {
        throw std::invalid_argument("coordinates: those of '" + whole.name + "' cannot be taken in part");
    }
    std::vector<std::size_t> places;
    for (const std::string& name : names) {
        part.name += (places.empty() ? "" : ",") + name;
        const auto group = whole.groups.find(name);
        const auto members = group == whole.groups.end() ? std::vector<std::string>{name} : group->second;
        for (const std::string& member : members) {
            const auto found = std::find(whole.coordinates.begin(), whole.coordinates.end(), member);
            const auto place = static_cast<std::size_t>(found - whole.coordinates.begin());
            const bool is_twice = std::find(places.begin(), places.end(), place) != places.end();
            if (found == whole.coordinates.end() || is_twice) {
                std::string known;
                for (const auto& [key, _] : whole.groups) known += key + ", ";
                for (const std::string& key : whole.coordinates) known += key + ", ";
                throw std::invalid_argument("coordinates: '" + member +
                                            (is_twice ? "' is named twice" : "' is no coordinate") +
                                            "; give some of " + known.substr(0, known.size() - 2));
            }
            places.push_back(place);
            part.coordinates.push_back(member);
        }
    }
    if (places.empty()) throw std::invalid_argument("coordinates: there are none; name at least one");
    part.name += "]";
    part.decode = [&whole, places](const float* coordinates, ParameterValues& values) {
        std::array<float, kMostCoordinates> all{};
        for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = coordinates[i];
        whole.decode(all.data(), values);
    };
    part.encode = [&whole, places](const ParameterValues& values) -> std::optional<std::vector<float>> {
        auto all = whole.encode(values);
        if (!all) return std::nullopt;
        std::vector<float> coordinates;
        for (const std::size_t place : places) coordinates.push_back(std::exchange((*all)[place], 0.0F));
        const bool fits = std::all_of(all->begin(), all->end(), [](float rest) { return rest == 0.0F; });
        return fits ? std::optional(coordinates) : std::nullopt;
    };
    return part;
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
