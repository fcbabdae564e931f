// The action space `tuning`: BBR's parameters, from coordinates in [-1, 1] and back.
//
// With a the coordinate:
//   gamma                     30 (1 + a) / (1 - a) packets: 0 at -1, eBCC's 30 at 0, infinity at 1
//   beta                      (1 + a) / 2
//   alpha                     1 - 10^(-1.5 (1 + a)), to three decimals: 0 at -1, 0.9 at -1/3, 0.999 at 1
//   smoothing_updates_rtprop  (1 + a) / 2; on from 0.5
//   cycle_length              1 + 3.5 (1 + a) phases, rounded: 8 at 1
//   entry_gain_minimum        1 + a
//   gain_1 … gain_8           1 + a / 2; those beyond the cycle's length are not used
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/environment/parameter_mapping.hpp"

namespace quicgym::environment {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kGammaCentre = 30.0;  // eBCC's
constexpr std::size_t kMaxPhases = 8;
constexpr std::size_t kTuningSize = 6 + kMaxPhases;

enum Coordinate : std::size_t { gamma, beta, alpha, updates_rtprop, cycle_length, entry_gain, first_gain };

double decode_gamma(double a) {
    return a >= 1.0 ? kInfinity : kGammaCentre * (1.0 + a) / (1.0 - a);
}

double encode_gamma(double packets) {
    return packets == kInfinity ? 1.0 : (packets - kGammaCentre) / (packets + kGammaCentre);
}

// The decimals make values such as 0.9 exact in spite of the action's single precision.
double decode_alpha(double a) {
    return std::round(1e3 * (1.0 - std::pow(10.0, -1.5 * (1.0 + a)))) / 1e3;
}

double encode_alpha(double weight) {
    return -1.0 - std::log10(1.0 - weight) / 1.5;
}

std::size_t decode_cycle_length(double a) {
    return 1 + static_cast<std::size_t>(std::lround(0.5 * (kMaxPhases - 1) * (1.0 + a)));
}

double encode_cycle_length(std::size_t phases) {
    return static_cast<double>(phases - 1) / (0.5 * (kMaxPhases - 1)) - 1.0;
}

void decode_tuning(const float* coordinates, ParameterValues& values) {
    const auto at = [coordinates](std::size_t index) { return static_cast<double>(coordinates[index]); };
    set_number(values, "gamma", decode_gamma(at(gamma)));
    set_number(values, "beta", 0.5 * (1.0 + at(beta)));
    set_number(values, "alpha", decode_alpha(at(alpha)));
    set_number(values, "smoothing_updates_rtprop", 0.5 * (1.0 + at(updates_rtprop)));
    set_number(values, "entry_gain_minimum", 1.0 + at(entry_gain));
    std::vector<double>& cycle = values["gain_cycle"];
    cycle.resize(decode_cycle_length(at(cycle_length)));
    for (std::size_t phase = 0; phase < cycle.size(); ++phase) {
        cycle[phase] = 1.0 + 0.5 * at(first_gain + phase);
    }
}

std::optional<std::vector<float>> encode_tuning(const ParameterValues& values) {
    std::vector<double> a(kTuningSize, 0.0);
    const auto number = [&values](const char* name) { return number_of(values, name); };
    const std::vector<double>* const cycle = numbers_of(values, "gain_cycle");
    if (cycle == nullptr || cycle->size() > kMaxPhases) return std::nullopt;
    a[gamma] = encode_gamma(number("gamma"));
    a[beta] = 2.0 * number("beta") - 1.0;
    a[alpha] = encode_alpha(number("alpha"));
    a[updates_rtprop] = 2.0 * number("smoothing_updates_rtprop") - 1.0;
    a[cycle_length] = encode_cycle_length(cycle->size());
    a[entry_gain] = number("entry_gain_minimum") - 1.0;
    for (std::size_t phase = 0; phase < cycle->size(); ++phase) {
        a[first_gain + phase] = 2.0 * ((*cycle)[phase] - 1.0);
    }
    return as_coordinates(a);
}

ActionSpace tuning() {
    ActionSpace space{.name = "tuning",
                      .coordinates = {"gamma", "beta", "alpha", "smoothing_updates_rtprop", "cycle_length",
                                      "entry_gain_minimum"},
                      .choices = {},
                      .make_actuator = make_mapped_actuator,
                      .decode = decode_tuning,
                      .encode = encode_tuning};
    for (std::size_t phase = 1; phase <= kMaxPhases; ++phase) {
        space.coordinates.push_back("gain_" + std::to_string(phase));
    }
    return space;
}

const RegisteredActionSpace kRegistered(&tuning);

}  // namespace

}  // namespace quicgym::environment
