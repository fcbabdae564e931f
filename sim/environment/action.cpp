#include "sim/environment/action.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "controllers/catalogue.hpp"
#include "controllers/external.hpp"

namespace quicgym::environment {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kGammaCentre = 30.0;  // eBCC's

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

void set_number(ParameterValues& values, const char* name, double number) {
    values[name].assign(1, number);
}

}  // namespace

std::span<const std::string_view> coordinate_names(ActionKind kind) {
    switch (kind) {
        case ActionKind::tuning:
            return kTuningCoordinates;
        case ActionKind::rate:
            return kRateCoordinates;
        case ActionKind::switching:
            return kSwitchingCoordinates;
        case ActionKind::window:
            return kWindowCoordinates;
    }
    return {};
}

std::size_t choice_count(ActionKind kind) {
    if (kind == ActionKind::switching) return switching_members().size();
    return kind == ActionKind::window ? kWindowExponents.size() : 0;
}

void check_action(ActionKind kind, std::size_t row, std::span<const float> coordinates) {
    const auto places = static_cast<float>(choice_count(kind));
    const bool is_place = places > 0.0F;
    for (std::size_t i = 0; i < coordinates.size(); ++i) {
        const float value = coordinates[i];
        // Written so that NaN fails.
        const bool valid = is_place ? value >= 0.0F && value < places && value == std::floor(value)
                                    : value >= -1.0F && value <= 1.0F;
        if (valid) continue;
        std::ostringstream text;
        text << "action of row " << row << ": [" << i << "], " << coordinate_names(kind)[i] << " = " << value
             << "; give ";
        if (is_place) {
            text << "a whole number from 0 to " << places - 1.0F;
        } else {
            text << "a number from -1 to 1";
        }
        throw std::invalid_argument(text.str());
    }
}

std::size_t shown_size(ActionKind kind) {
    return std::max(choice_count(kind), action_size(kind));
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
    std::vector<double> a(kTuningCoordinates.size(), 0.0);
    const auto find = [&values](const char* name) -> const std::vector<double>* {
        const auto found = values.find(name);
        return found == values.end() ? nullptr : &found->second;
    };
    const auto number = [&](const char* name) {
        const std::vector<double>* const found = find(name);
        return found == nullptr ? std::numeric_limits<double>::quiet_NaN() : found->front();
    };
    const std::vector<double>* const cycle = find("gain_cycle");
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
    // Written so that NaN fails too.
    if (!std::all_of(a.begin(), a.end(), [](double value) { return std::abs(value) <= 1.0 + 1e-12; })) {
        return std::nullopt;
    }
    std::vector<float> coordinates(a.size());
    std::transform(a.begin(), a.end(), coordinates.begin(),
                   [](double value) { return static_cast<float>(std::clamp(value, -1.0, 1.0)); });
    return coordinates;
}

Actuator::Actuator(ActionKind kind, std::size_t flow)
    : kind_(kind), flow_(flow), shown_(shown_size(kind)), gamma_(kInfinity) {}

void Actuator::start(const Simulation& simulation) {
    const ParameterValues current = simulation.parameters(flow_);
    if (const auto found = current.find("gamma"); found != current.end()) gamma_ = found->second.front();
    if (kind_ == ActionKind::tuning) {
        if (const auto encoded = encode_tuning(current)) {
            shown_ = *encoded;
            in_force_ = true;
        }
    } else if (kind_ == ActionKind::switching) {
        const auto found = current.find("active");
        if (found != current.end()) show_choice(static_cast<std::size_t>(found->second.front()));
    }
}

void Actuator::apply(Simulation& simulation, const float* coordinates) {
    if (kind_ == ActionKind::switching) {
        apply_switching(simulation, static_cast<std::size_t>(*coordinates));
        return;
    }
    if (kind_ == ActionKind::window) {
        apply_window(simulation, static_cast<std::size_t>(*coordinates));
        return;
    }
    if (kind_ == ActionKind::tuning) {
        if (in_force_ && std::equal(shown_.begin(), shown_.end(), coordinates)) return;
        apply_tuning(simulation, coordinates);
    } else {
        apply_rate(simulation, coordinates);
    }
    std::copy_n(coordinates, shown_.size(), shown_.begin());
    in_force_ = true;
}

void Actuator::apply_tuning(Simulation& simulation, const float* coordinates) {
    decode_tuning(coordinates, values_);
    simulation.set_parameters(flow_, values_);
    gamma_ = values_["gamma"].front();
}

void Actuator::apply_rate(Simulation& simulation, const float* coordinates) {
    const ControllerSnapshot now = simulation.snapshot(flow_);
    const double window =
        static_cast<double>(now.window_bytes) * std::exp2(static_cast<double>(coordinates[0]));
    set_number(values_, "window_bytes", std::clamp(window, kExternalSmallestWindow, kExternalLargestWindow));
    // Until an RTT is known the rate follows the window, which a guess would only hold up.
    if (now.round_trip_estimate > 0) {
        const double rate = now.pacing_rate * std::exp2(static_cast<double>(coordinates[1]));
        set_number(values_, "pacing_rate", std::clamp(rate, kExternalSlowestRate, kExternalFastestRate));
    }
    simulation.set_parameters(flow_, values_);
}

void Actuator::apply_switching(Simulation& simulation, std::size_t member) {
    if (shown_[member] == 1.0F) return;
    set_number(values_, "active", static_cast<double>(member));
    simulation.set_parameters(flow_, values_);
    show_choice(member);
}

// Slow start is left alone: what it finds out is what the agent is to decide on.
void Actuator::apply_window(Simulation& simulation, std::size_t factor) {
    show_choice(factor);
    const ControllerSnapshot now = simulation.snapshot(flow_);
    if (now.mode == ControllerMode::slow_start) return;
    const double window = static_cast<double>(now.window_bytes) * std::exp2(kWindowExponents[factor]);
    set_number(values_, "window_bytes", std::clamp(window, kExternalSmallestWindow, kExternalLargestWindow));
    simulation.set_parameters(flow_, values_);
}

void Actuator::show_choice(std::size_t choice) {
    std::fill(shown_.begin(), shown_.end(), 0.0F);
    shown_[choice] = 1.0F;
}

}  // namespace quicgym::environment
