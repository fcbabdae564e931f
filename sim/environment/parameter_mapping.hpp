// Action spaces whose coordinates stand for a controller's parameters in a way of their own: what applies the
// actions, and what their mappings have in common.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/environment/action_space.hpp"

namespace quicgym::environment {

// Makes the actuator of a space that has `decode` and `encode`.
std::unique_ptr<Actuator> make_mapped_actuator(const ActionSpace& space, std::size_t flow);

// A space whose parts are used has at most so many coordinates, so that decoding allocates nothing.
inline constexpr std::size_t kMostCoordinates = 64;

// The space's part with these coordinates or groups; `whole` outlives it. Throws std::invalid_argument that
// names the coordinates there are.
ActionSpace part_of(const ActionSpace& whole, const std::vector<std::string>& names);

inline void set_number(ParameterValues& values, const char* name, double number) {
    values[name].assign(1, number);
}

// nullptr: there is none of this name.
const std::vector<double>* numbers_of(const ParameterValues& values, const char* name);

// NaN: there is none of this name.
double number_of(const ParameterValues& values, const char* name);

// In single precision; empty when one is not from -1 to 1, NaN included.
std::optional<std::vector<float>> as_coordinates(const std::vector<double>& numbers);

}  // namespace quicgym::environment
