// The action spaces, and the actuators that apply an agent's actions to its flow.
//
// A file of this folder adds a space by registering it; nothing else names it. See window_action.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/catalogue.hpp"
#include "sim/simulation.hpp"

namespace quicgym::environment {

class Actuator;

// An action is a number from -1 to 1 for each coordinate; or, where there are choices, the place of one of
// them as its only number.
struct ActionSpace {
    std::string name;
    std::vector<std::string> coordinates;
    std::vector<std::string> choices;
    // An action changes what the controller has at that moment, instead of saying what it should have. Such
    // an action waits until the flow has started.
    bool is_relative = false;
    std::unique_ptr<Actuator> (*make_actuator)(const ActionSpace& space, std::size_t flow);
    // Where coordinates stand for a controller's parameters in a way of the space's own
    // (parameter_mapping.hpp). `decode` fills `values`, without allocation once it has them; `encode` is its
    // inverse, empty for parameters that are missing or outside the space.
    std::function<void(const float* coordinates, ParameterValues& values)> decode{};
    std::function<std::optional<std::vector<float>>(const ParameterValues& values)> encode{};
    // Names that stand for several coordinates, such as "gain_cycle", where a part of the space is asked for.
    std::map<std::string, std::vector<std::string>> groups{};
    // The controller's parameters, and those that a part of the space keeps at other values than its own.
    std::vector<ParameterSpecification> parameters{};
    ParameterValues fixed{};

    std::size_t size() const { return coordinates.size(); }
    // The numbers with which an observation shows the action in force: its coordinates, or a 1 in the place
    // of the choice.
    std::size_t shown_size() const { return std::max(coordinates.size(), choices.size()); }
    // Brings finite coordinates to [-1, 1]; leaves choices as they are.
    void clip(std::span<float> action) const;
    // Throws std::invalid_argument, naming the row, unless the action is one of the space.
    void check(std::size_t row, std::span<const float> action) const;
};

// Applies one agent's actions to its flow, and remembers what an observation shows of them.
class Actuator {
public:
    Actuator(const ActionSpace& space, std::size_t flow) : flow_(flow), shown_(space.shown_size()) {}
    virtual ~Actuator() = default;
    Actuator& operator=(const Actuator&) = delete;
    virtual std::unique_ptr<Actuator> clone() const = 0;

    // Reads where the flow's controller stands, when the episode begins. What is shown stays 0 where that is
    // not in the space.
    virtual void start(const SteeredFlows& /*flows*/) {}
    // `action` is one of the space.
    virtual void apply(SteeredFlows& flows, const float* action) = 0;

    const std::vector<float>& shown() const { return shown_; }

protected:
    Actuator(const Actuator&) = default;  // for clone()

    void show(const float* coordinates) { std::copy_n(coordinates, shown_.size(), shown_.begin()); }
    void show_choice(std::size_t choice);

    std::size_t flow_;
    std::vector<float> shown_;
    ParameterValues values_;  // reused, so that setting a parameter allocates nothing
};

// Every space, sorted by name.
const std::vector<ActionSpace>& action_spaces();

// "NAME[one,other,parameter=2]" is a part of a space with `decode`: it has these coordinates or groups, in
// this order, keeps the parameter at 2, and all other coordinates at 0. Throws std::invalid_argument that
// lists the names.
const ActionSpace& find_action_space(std::string_view name);

// A constant of this type at namespace scope registers a space, or several. The function runs at the first
// look-up, when all controllers are known.
class RegisteredActionSpace {
public:
    explicit RegisteredActionSpace(ActionSpace (*make)());
    explicit RegisteredActionSpace(std::vector<ActionSpace> (*make)());  // several
};

}  // namespace quicgym::environment
