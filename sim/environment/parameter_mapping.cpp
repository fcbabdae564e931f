#include "sim/environment/parameter_mapping.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "controllers/parameters.hpp"
#include "sim/base/numbers.hpp"

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

namespace {

// Reads "startup_gain=2" into `fixed`. Throws std::invalid_argument for an unknown parameter, and for what is
// no number or none of its range.
void read_fixed(const std::string& text, const std::vector<ParameterSpecification>& parameters,
                ParameterValues& fixed) {
    const std::size_t sign = text.find('=');
    const std::string name = text.substr(0, sign);
    const ParameterSpecification* found = nullptr;
    std::string names;
    for (const ParameterSpecification& parameter : parameters) {
        if (parameter.is_list) continue;
        if (parameter.name == name) found = &parameter;
        names += (names.empty() ? "" : ", ") + parameter.name;
    }
    if (found == nullptr) {
        throw std::invalid_argument("coordinates: '" + text + "' fixes no parameter; there are " + names);
    }
    if (fixed.contains(name)) throw std::invalid_argument("coordinates: '" + name + "' is fixed twice");
    const auto number = read_double(text.substr(sign + 1));
    if (!number) throw std::invalid_argument("coordinates: '" + text + "' needs a number after the =");
    if (!in_range(*found, *number)) {
        std::ostringstream range;
        range << found->minimum << " to " << found->maximum;
        throw std::invalid_argument("coordinates: '" + text + "' is outside the range, " + range.str());
    }
    set_number(fixed, name.c_str(), *number);
}

// Throws std::invalid_argument where this coordinate moves a parameter that is fixed.
void refuse_both(const ActionSpace& whole, std::size_t place, const ParameterValues& fixed) {
    std::array<float, kMostCoordinates> coordinates{};
    ParameterValues resting;
    whole.decode(coordinates.data(), resting);
    for (const float end : {-1.0F, 1.0F}) {
        ParameterValues moved;
        coordinates[place] = end;
        whole.decode(coordinates.data(), moved);
        for (const auto& [name, _] : fixed) {
            if (!moved.contains(name) || moved[name] == resting[name]) continue;
            throw std::invalid_argument("coordinates: '" + name +
                                        "' cannot be moved by actions and fixed at the same time");
        }
    }
}

}  // namespace

ActionSpace part_of(const ActionSpace& whole, const std::vector<std::string>& names) {
    ActionSpace part{.name = whole.name + "[",
                     .coordinates = {},
                     .choices = {},
                     .make_actuator = make_mapped_actuator,
                     .parameters = whole.parameters};
    if (!whole.decode || whole.size() > kMostCoordinates) {
        throw std::invalid_argument("coordinates: those of '" + whole.name + "' cannot be taken in part");
    }
    std::vector<std::size_t> places;
    for (const std::string& name : names) {
        part.name += (part.name.ends_with('[') ? "" : ",") + name;
        if (name.find('=') != std::string::npos) {
            read_fixed(name, whole.parameters, part.fixed);
            continue;
        }
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
    for (const std::size_t place : places) refuse_both(whole, place, part.fixed);
    const ParameterValues& fixed = part.fixed;
    part.decode = [&whole, places, fixed](const float* coordinates, ParameterValues& values) {
        std::array<float, kMostCoordinates> all{};
        for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = coordinates[i];
        whole.decode(all.data(), values);
        for (const auto& [name, numbers] : fixed) values[name] = numbers;
    };
    part.encode = [&whole, places,
                   fixed](const ParameterValues& values) -> std::optional<std::vector<float>> {
        ParameterValues moved = values, own;
        whole.decode(std::vector<float>(whole.size(), 0.0F).data(), own);
        for (const auto& [name, numbers] : fixed) {
            const auto given = moved.find(name);
            if (given == moved.end() || given->second != numbers) return std::nullopt;
            if (own.contains(name)) given->second = own[name];
        }
        auto all = whole.encode(moved);
        if (!all) return std::nullopt;
        std::vector<float> coordinates;
        for (const std::size_t place : places) coordinates.push_back(std::exchange((*all)[place], 0.0F));
        const bool others_rest = std::all_of(all->begin(), all->end(), [](float a) { return a == 0.0F; });
        return others_rest ? std::optional(coordinates) : std::nullopt;
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
