#include "sim/environment/tuning_action.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/environment/action_space.hpp"

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

namespace {

class TuningActuator : public Actuator {
public:
    using Actuator::Actuator;
    std::unique_ptr<Actuator> clone() const override { return std::make_unique<TuningActuator>(*this); }

    void start(const Simulation& simulation) override {
        Actuator::start(simulation);
        const auto encoded = encode_tuning(simulation.parameters(flow_));
        if (!encoded) return;
        shown_ = *encoded;
        in_force_ = true;
    }

    // Parameters that have not changed are not set again.
    void apply(Simulation& simulation, const float* action) override {
        if (in_force_ && std::equal(shown_.begin(), shown_.end(), action)) return;
        decode_tuning(action, values_);
        simulation.set_parameters(flow_, values_);
        gamma_ = values_["gamma"].front();
        show(action);
        in_force_ = true;
    }

private:
    bool in_force_ = false;  // what is shown is what the controller has
};

ActionSpace tuning() {
    ActionSpace space{
        .name = "tuning",
        .coordinates = {"gamma", "beta", "alpha", "smoothing_updates_rtprop", "cycle_length",
                        "entry_gain_minimum"},
        .choices = {},
        .make_actuator = [](const ActionSpace& of, std::size_t flow) -> std::unique_ptr<Actuator> {
            return std::make_unique<TuningActuator>(of, flow);
        }};
    for (std::size_t phase = 1; phase <= kMaxPhases; ++phase) {
        space.coordinates.push_back("gain_" + std::to_string(phase));
    }
    return space;
}

const RegisteredActionSpace kRegistered(&tuning);

}  // namespace

}  // namespace quicgym::environment
