#include "sim/environment/action_space.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "sim/environment/parameter_mapping.hpp"

namespace quicgym::environment {

namespace {

// A function's static, because registrations run in no particular order.
std::vector<std::function<std::vector<ActionSpace>()>>& registrations() {
    static std::vector<std::function<std::vector<ActionSpace>()>> functions;
    return functions;
}

std::vector<ActionSpace> make_spaces() {
    std::vector<ActionSpace> spaces;
    for (const auto& make : registrations()) {
        for (ActionSpace& space : make()) spaces.push_back(std::move(space));
    }
    std::sort(spaces.begin(), spaces.end(),
              [](const ActionSpace& one, const ActionSpace& other) { return one.name < other.name; });
    return spaces;
}

// Parts are made when they are asked for first, and kept: actuators refer to them.
const ActionSpace& find_part(std::string_view name, std::size_t bracket) {
    static std::mutex mutex;
    static std::map<std::string, ActionSpace, std::less<>> parts;
    const ActionSpace& whole = find_action_space(name.substr(0, bracket));
    std::istringstream list(std::string(name.substr(bracket + 1, name.size() - bracket - 2)));
    std::vector<std::string> names;
    for (std::string one; std::getline(list, one, ',');) names.push_back(one);
    const std::lock_guard lock(mutex);
    const auto known = parts.find(name);
    return known != parts.end() ? known->second : parts.emplace(name, part_of(whole, names)).first->second;
}

}  // namespace

RegisteredActionSpace::RegisteredActionSpace(ActionSpace (*make)()) {
    registrations().push_back([make] { return std::vector<ActionSpace>{make()}; });
}

RegisteredActionSpace::RegisteredActionSpace(std::vector<ActionSpace> (*make)()) {
    registrations().push_back(make);
}

const std::vector<ActionSpace>& action_spaces() {
    static const std::vector<ActionSpace> spaces = make_spaces();
    return spaces;
}

const ActionSpace& find_action_space(std::string_view name) {
    const auto bracket = name.find('[');
    if (bracket != std::string_view::npos && name.ends_with(']')) return find_part(name, bracket);
    std::string known;
    for (const ActionSpace& space : action_spaces()) {
        if (space.name == name) return space;
        known += (known.empty() ? "" : ", ") + space.name;
    }
    throw std::invalid_argument("no action space is named '" + std::string(name) + "'; there are: " + known);
}

void ActionSpace::clip(std::span<float> action) const {
    if (!choices.empty()) return;
    for (float& value : action)
        if (std::isfinite(value)) value = std::clamp(value, -1.0F, 1.0F);
}

void ActionSpace::check(std::size_t row, std::span<const float> action) const {
    const auto places = static_cast<float>(choices.size());
    const bool is_place = places > 0.0F;
    for (std::size_t i = 0; i < action.size(); ++i) {
        const float value = action[i];
        // Written so that NaN fails.
        const bool valid = is_place ? value >= 0.0F && value < places && value == std::floor(value)
                                    : value >= -1.0F && value <= 1.0F;
        if (valid) continue;
        std::ostringstream text;
        text << "action of row " << row << ": [" << i << "], " << coordinates[i] << " = " << value
             << "; give ";
        if (is_place) {
            text << "a whole number from 0 to " << places - 1.0F;
        } else {
            text << "a number from -1 to 1";
        }
        throw std::invalid_argument(text.str());
    }
}

void Actuator::show_choice(std::size_t choice) {
    std::fill(shown_.begin(), shown_.end(), 0.0F);
    shown_[choice] = 1.0F;
}

}  // namespace quicgym::environment
