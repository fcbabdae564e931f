// The action space `tuning`: BBR's parameters, from coordinates in [-1, 1] and back. At 0 all of them are
// BBR's own. The environment takes the part with γ, β, the gain cycle and α unless it is asked for another.
//
// With a the coordinate:
//   gamma                   30 (1 - a) / a packets: eBCC's 30 at 1/2, 0 at 1; infinity from 0 down
//   beta                    a; 0 from 0 down
//   alpha                   1 - 10^(3 - 6 |a|), 0 up to |a| = 1/2: 0.9 at ±2/3, 0.999 at ±1; smoothing
//                           updates RTprop from 0 up. With the least weight BBR's window follows the latest
//                           RTT, so noise around 0 must not bring it.
//   cycle_length            8 * 8^a phases, rounded: 1 to 64
//   entry_gain_minimum      1 + a
//   gain_1 … gain_8         BBR's gain times 2^a: around 1.25, 0.75 and 1; later phases have a gain of 1
//   cwnd_gain               2 * 4^a: 0.5 to 8
//   startup_gain            2.885 * 2^a
//   rtprop_window           10 * 8^a s: 1.25 to 80
//   probe_rtt_duration      200 * 10^a ms: 20 to 2000
//   bandwidth_window        4^a times BBR's: the cycle's length and two more, in rounds
// Values are rounded to four digits after the point, which makes those of the presets exact in spite of an
// action's single precision.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "controllers/bbr_parameters.hpp"
#include "sim/environment/parameter_mapping.hpp"

namespace quicgym::environment {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kGammaInTheMiddle = 30.0;  // eBCC's
constexpr std::size_t kTunedPhases = 8;
constexpr double kLongestCycle = 64.0;
constexpr double kLeastSmoothing = 0.5;  // |a|
constexpr double kSmoothingDecades = 3.0 / (1.0 - kLeastSmoothing);

enum Coordinate : std::size_t { gamma, beta, alpha, cycle_length, entry_gain, first_gain };

// BBR's own value times base^a.
struct Power {
    const char* coordinate;
    const char* parameter;
    double own;
    double base;
};

const std::array<Power, 4>& powers() {
    static const BbrParameters bbr;
    static const std::array<Power, 4> rows{{
        {"cwnd_gain", "cwnd_gain", bbr.cwnd_gain, 4.0},
        {"startup_gain", "startup_gain", bbr.startup_gain, 2.0},
        {"rtprop_window", "rtprop_window_s", bbr.rtprop_window_s, 8.0},
        {"probe_rtt_duration", "probe_rtt_duration_ms", bbr.probe_rtt_duration_ms, 10.0},
    }};
    return rows;
}

constexpr std::size_t kFirstPower = first_gain + kTunedPhases;
constexpr std::size_t kBandwidthWindow = kFirstPower + std::tuple_size_v<std::decay_t<decltype(powers())>>;
constexpr std::size_t kSize = kBandwidthWindow + 1;

double rounded(double value) {
    return std::round(1e4 * value) / 1e4;
}

double power(double base, double exponent) {
    return std::pow(base, exponent);
}

double logarithm(double base, double value) {
    return std::log(value) / std::log(base);
}

double own_gain(std::size_t phase) {
    static const std::vector<double> cycle = BbrParameters().gain_cycle;
    return phase < cycle.size() ? cycle[phase] : 1.0;
}

// BBR's own length of the bandwidth filter: bandwidth_window_rounds = 0 stands for it.
double own_bandwidth_window(std::size_t phases) {
    return static_cast<double>(phases + 2);
}

void decode_tuning(const float* coordinates, ParameterValues& values) {
    const auto at = [coordinates](std::size_t index) { return static_cast<double>(coordinates[index]); };
    set_number(values, "gamma",
               at(gamma) > 0.0 ? rounded(kGammaInTheMiddle * (1.0 - at(gamma)) / at(gamma)) : kInfinity);
    set_number(values, "beta", rounded(std::max(0.0, at(beta))));
    const double smoothing = std::max(0.0, std::abs(at(alpha)) - kLeastSmoothing);
    const double weight = std::round(1e3 * (1.0 - power(10.0, -kSmoothingDecades * smoothing))) / 1e3;
    set_number(values, "alpha", weight);
    set_number(values, "smoothing_updates_rtprop", weight > 0.0 && at(alpha) < 0.0 ? 0.0 : 1.0);
    set_number(values, "entry_gain_minimum", rounded(1.0 + at(entry_gain)));
    std::vector<double>& cycle = values["gain_cycle"];
    cycle.reserve(static_cast<std::size_t>(kLongestCycle));
    cycle.resize(static_cast<std::size_t>(std::lround(8.0 * power(8.0, at(cycle_length)))));
    for (std::size_t phase = 0; phase < cycle.size(); ++phase) {
        cycle[phase] =
            phase < kTunedPhases ? rounded(own_gain(phase) * power(2.0, at(first_gain + phase))) : 1.0;
    }
    for (std::size_t i = 0; i < powers().size(); ++i) {
        const Power& row = powers()[i];
        set_number(values, row.parameter, rounded(row.own * power(row.base, at(kFirstPower + i))));
    }
    const double own_rounds = own_bandwidth_window(cycle.size());
    // A whole number within the space: a quarter of 25 rounds is 7, so that it can be encoded again.
    const double rounds =
        std::max(std::ceil(own_rounds / 4.0), std::round(own_rounds * power(4.0, at(kBandwidthWindow))));
    set_number(values, "bandwidth_window_rounds", rounds == own_rounds ? 0.0 : rounds);
}

std::optional<std::vector<float>> encode_tuning(const ParameterValues& values) {
    std::vector<double> a(kSize, 0.0);
    const std::vector<double>* const cycle = numbers_of(values, "gain_cycle");
    if (cycle == nullptr) return std::nullopt;
    const auto number = [&values](const char* name) { return number_of(values, name); };
    const double packets = number("gamma");
    a[gamma] = packets == kInfinity ? 0.0 : kGammaInTheMiddle / (kGammaInTheMiddle + packets);
    a[beta] = number("beta");
    const double weight = number("alpha");
    a[alpha] = weight == 0.0 ? 0.0 : kLeastSmoothing - std::log10(1.0 - weight) / kSmoothingDecades;
    if (number("smoothing_updates_rtprop") < 0.5) a[alpha] = -a[alpha];
    a[cycle_length] = logarithm(8.0, static_cast<double>(cycle->size()) / 8.0);
    a[entry_gain] = number("entry_gain_minimum") - 1.0;
    for (std::size_t phase = 0; phase < cycle->size(); ++phase) {
        const double exponent = logarithm(2.0, (*cycle)[phase] / own_gain(phase));
        if (phase < kTunedPhases) {
            a[first_gain + phase] = exponent;
        } else if (exponent != 0.0) {
            return std::nullopt;
        }
    }
    for (std::size_t i = 0; i < powers().size(); ++i) {
        const Power& row = powers()[i];
        a[kFirstPower + i] = logarithm(row.base, number(row.parameter) / row.own);
    }
    const double rounds = number("bandwidth_window_rounds");
    a[kBandwidthWindow] = rounds == 0.0 ? 0.0 : logarithm(4.0, rounds / own_bandwidth_window(cycle->size()));
    return as_coordinates(a);
}

ActionSpace tuning() {
    ActionSpace space{.name = "tuning",
                      .coordinates = {"gamma", "beta", "alpha", "cycle_length", "entry_gain_minimum"},
                      .choices = {},
                      .make_actuator = make_mapped_actuator,
                      .decode = decode_tuning,
                      .encode = encode_tuning,
                      .parameters = find_controller("bbr").parameters};
    std::vector<std::string>& gain_cycle = space.groups["gain_cycle"];
    gain_cycle = {"cycle_length", "entry_gain_minimum"};
    for (std::size_t phase = 1; phase <= kTunedPhases; ++phase) {
        space.coordinates.push_back("gain_" + std::to_string(phase));
        gain_cycle.push_back(space.coordinates.back());
    }
    for (const Power& row : powers()) space.coordinates.emplace_back(row.coordinate);
    space.coordinates.emplace_back("bandwidth_window");
    space.groups["all"] = space.coordinates;
    return space;
}

const RegisteredActionSpace kRegistered(&tuning);

}  // namespace

}  // namespace quicgym::environment
