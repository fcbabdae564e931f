// From coordinates in [-1, 1] to what a controller is told, and back.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulation.hpp"

namespace quicgym::environment {

enum class ActionKind : std::uint8_t { tuning, rate, switching, window };

// BBR's parameter space. With a in [-1, 1]:
//   gamma                     30 (1 + a) / (1 - a) packets: 0 at -1, eBCC's 30 at 0, infinity at 1
//   beta                      (1 + a) / 2
//   alpha                     1 - 10^(-1.5 (1 + a)), to three decimals: 0 at -1, 0.9 at -1/3, 0.999 at 1
//   smoothing_updates_rtprop  (1 + a) / 2; on from 0.5
//   cycle_length              1 + 3.5 (1 + a) phases, rounded: 8 at 1
//   entry_gain_minimum        1 + a
//   gain_1 … gain_8           1 + a / 2; those beyond the cycle's length are not used
inline constexpr std::size_t kMaxPhases = 8;
inline constexpr std::array<std::string_view, 6 + kMaxPhases> kTuningCoordinates{
    "gamma",        "beta",
    "alpha",        "smoothing_updates_rtprop",
    "cycle_length", "entry_gain_minimum",
    "gain_1",       "gain_2",
    "gain_3",       "gain_4",
    "gain_5",       "gain_6",
    "gain_7",       "gain_8",
};

// Window and pacing rate, each times 2^a.
inline constexpr std::array<std::string_view, 2> kRateCoordinates{"window", "pacing_rate"};

// The place of a controller in switching_members().
inline constexpr std::array<std::string_view, 1> kSwitchingCoordinates{"controller"};

// The place of a factor in kWindowExponents: the window is multiplied by 2 to its power.
inline constexpr std::array<std::string_view, 1> kWindowCoordinates{"factor"};
inline constexpr std::array<double, 13> kWindowExponents{
    -1.0, -0.5, -0.25, -0.125, -0.0625, -0.03125, 0.0, 0.03125, 0.0625, 0.125, 0.25, 0.5, 1.0};

std::span<const std::string_view> coordinate_names(ActionKind kind);
inline std::size_t action_size(ActionKind kind) {
    return coordinate_names(kind).size();
}
// How many choices there are where an action is a place among them, else 0.
std::size_t choice_count(ActionKind kind);
// Whether an action changes what the controller has at that moment, rather than to say what it should have.
inline bool is_relative(ActionKind kind) {
    return kind == ActionKind::rate || kind == ActionKind::window;
}
// Throws std::invalid_argument, naming the row, unless all coordinates are numbers from -1 to 1, or a
// place where there are choices.
void check_action(ActionKind kind, std::size_t row, std::span<const float> coordinates);
// What an observation shows of the action in force: coordinates, or a 1 in the choice's place.
std::size_t shown_size(ActionKind kind);

// Fills `values` with the parameters named above; no allocation once it has them.
void decode_tuning(const float* coordinates, ParameterValues& values);

// The coordinates of these parameters; empty when one is missing or outside the space.
std::optional<std::vector<float>> encode_tuning(const ParameterValues& values);

// Applies one agent's actions to its flow, and remembers what an observation shows of them.
class Actuator {
public:
    Actuator(ActionKind kind, std::size_t flow);

    // Reads where the flow's controller stands; all 0 where that is not in the space.
    void start(const Simulation& simulation);
    // The coordinates are valid. Parameters that have not changed are not set again.
    void apply(Simulation& simulation, const float* coordinates);

    const std::vector<float>& shown() const { return shown_; }
    double gamma() const { return gamma_; }  // infinite where the controller has none

private:
    void apply_tuning(Simulation& simulation, const float* coordinates);
    void apply_rate(Simulation& simulation, const float* coordinates);
    void apply_switching(Simulation& simulation, std::size_t member);
    void apply_window(Simulation& simulation, std::size_t factor);
    void show_choice(std::size_t choice);

    ActionKind kind_;
    std::size_t flow_;
    std::vector<float> shown_;
    bool in_force_ = false;  // what is shown is what the controller has
    ParameterValues values_;
    double gamma_;
};

}  // namespace quicgym::environment
