// PCC Vivace as its authors distribute it: PCC-Uspace, branch master at 30c2cfe, with the utility "Vivace"
// and the sender PccVivaceSender; "the code" below.
#include <algorithm>
#include <array>
#include <cmath>

#include "controllers/monitor_intervals.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"

namespace quicgym {

namespace {

constexpr char kName[] = "vivace";
constexpr double kMebibit = 1024.0 * 1024.0 / 8.0;  // what the code calls a Mbit, in bytes
constexpr double kFewestSamples = 4.0;              // of the RTT in an interval
constexpr double kAmplifierExponent = 1.2;
constexpr double kFirstBoundary = 0.05;
constexpr double kBoundaryStep = 0.05;
constexpr double kSmallestChangeMbps = 0.5;
constexpr double kIgnoredRiseSeconds = 1e-3;  // of the RTT over an interval of the starting phase

struct VivaceParameters {
    double throughput_exponent = VivaceUtility().throughput_exponent;
    double latency_coefficient = VivaceUtility().latency_coefficient;
    double loss_coefficient = VivaceUtility().loss_coefficient;
    double probing_step = 0.05;
    double probing_pairs = 3.0;
    double smallest_rate_mbps = 0.5;
    double window_gain = 2.0;
};

const ParameterTable<VivaceParameters>& table() {
    using P = VivaceParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::throughput_exponent>("throughput_exponent", 0.1, 0.999, "",
                                           "t in u = x^t - b * x * dRTT/dT - c * x * L, with x in Mbps",
                                           "PCC-Uspace, kSendingRateExponent"),
        number<P, &P::latency_coefficient>("latency_coefficient", 0.0, 1e6, "", "b",
                                           "PCC-Uspace, kLatencyCoefficient")
            .logarithmic(1.0),
        number<P, &P::loss_coefficient>("loss_coefficient", 0.0, 1e4, "", "c",
                                        "PCC-Uspace, kVivaceLossCoefficient")
            .logarithmic(0.1),
        number<P, &P::probing_step>("probing_step", 0.001, 0.5, "",
                                    "Intervals in pairs have the rates r * (1 + this) and r * (1 - this)",
                                    "PCC-Uspace, kProbingStepSize")
            .logarithmic(),
        number<P, &P::probing_pairs>("probing_pairs", 1.0, 4.0, "pairs",
                                     "Pairs of intervals per decision: most of them raise the rate, all of "
                                     "them lower it",
                                     "PCC-Uspace, kNumIntervalGroupsInProbingPrimary"),
        number<P, &P::smallest_rate_mbps>("smallest_rate_mbps", 0.001, 100.0, "Mbps", "The lowest rate",
                                          "PCC-Uspace, kMinSendingRate")
            .logarithmic(),
        number<P, &P::window_gain>("window_gain", 1.2, 10.0, "",
                                   "The window is this times rate * smoothed RTT, and the initial window",
                                   "RFC 9002 7: what is in flight is limited"),
    };
    return rows;
}

// Whether the mean RTTs of the latest intervals rise by more than they are used to.
class RttTrend {
public:
    // With the mean RTT of an interval, in seconds.
    bool rises(double mean_rtt) {
        std::rotate(means_.begin(), means_.begin() + 1, means_.end());
        means_.back() = mean_rtt;
        if (++count_ < means_.size()) return false;
        const double gradient = slope();
        if (smallest_ < kNoGradient || std::abs(gradient) < kTiny * smallest_) {
            smallest_ = deviation_ = std::abs(gradient);
            mean_ = 0.0;
            last_ = gradient;
            return false;
        }
        const bool unusual = std::abs(gradient - mean_) > kDeviations * deviation_;
        if (!unusual) {
            deviation_ += kWeight * (std::abs(gradient - last_) - deviation_);
            mean_ += kWeight * (gradient - mean_);
            last_ = gradient;
        }
        smallest_ = std::min(smallest_, std::abs(gradient));
        return unusual && gradient > 0.0;
    }

private:
    static constexpr std::size_t kHistory = 6;    // kRttHistoryLen
    static constexpr double kNoGradient = 1e-12;  // seconds; 1e-6 us in the code
    static constexpr double kTiny = 0.01;         // 1 / kBeta
    static constexpr double kDeviations = 2.0;    // kInflationToleranceGain
    static constexpr double kWeight = 0.1;        // kAlpha

    // The slope of a linear regression over the intervals' numbers.
    double slope() const {
        double sum = 0.0, spread = 0.0;
        for (std::size_t i = 0; i < kHistory; ++i) {
            const double place = static_cast<double>(i) - 0.5 * static_cast<double>(kHistory - 1);
            sum += place * means_[i];
            spread += place * place;
        }
        return sum / spread;
    }

    std::array<double, kHistory> means_{};
    std::size_t count_ = 0;
    double mean_ = 0.0;
    double deviation_ = 0.0;
    double smallest_ = 0.0;
    double last_ = 0.0;
};

class Vivace final : public MonitoringController {
public:
    Vivace(const ParameterValues& values, std::uint64_t max_datagram_bytes)
        : MonitoringController(max_datagram_bytes),
          parameters_(with_values(table(), kName, VivaceParameters(), values)) {
        set_window();
    }
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Vivace>(*this); }

    void set_parameters(const ParameterValues& values) override {
        parameters_ = with_values(table(), kName, parameters_, values);
    }
    ParameterValues parameters() const override { return to_values(table(), parameters_); }

private:
    struct Measured {
        double rate = 0.0;  // as planned, bytes per second
        double utility = 0.0;
    };

    bool is_long_enough(const MonitorInterval& interval, Time now) const override {
        return interval.samples() >= kFewestSamples && interval.age(now) >= min_rtt();
    }
    double probing_step() const override { return parameters_.probing_step; }
    std::size_t probing_pairs() const override { return static_cast<std::size_t>(parameters_.probing_pairs); }
    double smallest_rate() const override { return parameters_.smallest_rate_mbps * kBytesPerSecondPerMbps; }
    double window_gain() const override { return parameters_.window_gain; }

    void decide() override;
    Measured measured(const MonitorInterval& interval);
    void decide_starting();
    void decide_probing();
    void decide_moving();
    void move(double direction, double utility_change, double rate_change, double amplifier);
    void enter_moving_unless_slowest();

    VivaceParameters parameters_;
    RttTrend trend_;
    Measured latest_;
    double direction_ = 0.0;          // 1 up, -1 down
    std::uint64_t rounds_ = 1;        // in this phase
    double boundary_exceeded_ = 0.0;  // changes beyond the boundary, less those within it
};

// A rise of the RTT counts if it is larger than the noise around it, or if a trend continues over several
// intervals. A fall never counts.
Vivace::Measured Vivace::measured(const MonitorInterval& interval) {
    double gradient = interval.rtt_gradient();
    const bool rises = trend_.rises(interval.mean_rtt());
    const bool is_noise = interval.rtt_residual() >= std::abs(gradient) * interval.mean_rtt();
    const bool is_little = phase_ == Phase::starting && gradient * interval.seconds() < kIgnoredRiseSeconds;
    if ((is_noise && !rises) || is_little || gradient < 0.0) gradient = 0.0;
    const VivaceUtility utility{parameters_.throughput_exponent, parameters_.latency_coefficient,
                                parameters_.loss_coefficient};
    return {interval.rate(), utility.of(interval.sent_mbps(), gradient, interval.loss_rate())};
}

void Vivace::decide() {
    switch (phase_) {
        case Phase::starting:
            return decide_starting();
        case Phase::probing:
            return decide_probing();
        case Phase::moving:
            return decide_moving();
    }
}

void Vivace::decide_starting() {
    const Measured reached = measured(interval(0));
    if (reached.utility > latest_.utility) {
        latest_ = reached;
        set_rate(2.0 * rate());
    } else {
        phase_ = Phase::probing;
        rounds_ = 1;
        set_rate(rate() / 2.0);
    }
}

// Up if more than half of the pairs are for it, down if all are.
void Vivace::decide_probing() {
    const std::size_t pairs = planned() / 2;
    std::array<Measured, 2 * kMostPairs> all;
    for (std::size_t i = 0; i < 2 * pairs; ++i) all[i] = measured(interval(i));
    const auto votes_up = [&all](std::size_t pair) {
        const Measured &one = all[2 * pair], &other = all[2 * pair + 1];
        return (one.utility > other.utility) == (one.rate > other.rate);
    };
    std::size_t up = 0;
    for (std::size_t pair = 0; pair < pairs; ++pair) up += votes_up(pair) ? 1 : 0;
    if (up <= pairs / 2 && up > 0) {
        ++rounds_;
    } else {
        direction_ = up > 0 ? 1.0 : -1.0;
        double utility_change = 0.0;
        for (std::size_t pair = 0; pair < pairs; ++pair) {
            if (votes_up(pair) != (direction_ > 0.0)) continue;
            const Measured &one = all[2 * pair], &other = all[2 * pair + 1];
            utility_change += std::abs(one.utility - other.utility) / static_cast<double>(pairs);
            latest_ = one.utility > other.utility ? one : other;
        }
        set_rate(rate() * (1.0 + direction_ * parameters_.probing_step));
        rounds_ = 1;
        boundary_exceeded_ = 0.0;
        move(direction_, utility_change, std::abs(all[0].rate - all[1].rate), 1.0);
        enter_moving_unless_slowest();
    }
    // Nothing is gained by probing at the lowest rate.
    if ((rounds_ > 1 || phase_ == Phase::moving) && rate() <= smallest_rate()) {
        phase_ = Phase::starting;
        rounds_ = 1;
        boundary_exceeded_ = 0.0;
    }
}

// On in the same direction while the utility rises in it, and otherwise a step back.
void Vivace::decide_moving() {
    const Measured reached = measured(interval(0));
    const double utility_change = reached.utility - latest_.utility;
    const double rate_change = reached.rate - latest_.rate;
    if (utility_change * rate_change * direction_ > 0.0) {
        ++rounds_;
        const double amplifier = std::pow(static_cast<double>((rounds_ + 1) / 2), kAmplifierExponent);
        move(direction_, std::abs(utility_change), std::abs(rate_change), amplifier);
        latest_ = reached;
        enter_moving_unless_slowest();
    } else {
        rounds_ = 1;
        phase_ = Phase::probing;
        if (rate_change != 0.0) move(-direction_, std::abs(utility_change), std::abs(rate_change), 1.0);
    }
}

// The change grows with the gradient of the utility, up to a boundary that widens with each change beyond it.
void Vivace::move(double direction, double utility_change, double rate_change, double amplifier) {
    const double gradient = utility_change * kMebibit / rate_change;
    const double wanted = amplifier * gradient * kMebibit;
    const double boundary = rate() * (kFirstBoundary + kBoundaryStep * boundary_exceeded_);
    if (wanted > boundary) {
        boundary_exceeded_ += 1.0;
    } else {
        boundary_exceeded_ = std::max(boundary_exceeded_ - 1.0, 0.0);
    }
    const double change = std::max(std::min(wanted, boundary), kSmallestChangeMbps * kBytesPerSecondPerMbps);
    set_rate(rate() + direction * change);
}

void Vivace::enter_moving_unless_slowest() {
    phase_ = Phase::moving;
    if (rate() > smallest_rate()) return;
    phase_ = Phase::probing;
    rounds_ = 1;
    boundary_exceeded_ = 0.0;
}

ControllerSpecification vivace_specification() {
    return {kName, "PCC Vivace as PCC-Uspace, its authors' implementation, has it",
            "PCC-Uspace (github.com/PCCproject), branch master at 30c2cfe",
            specifications(table(), VivaceParameters()), construct<Vivace>};
}

const Registration registered(vivace_specification);

}  // namespace

}  // namespace quicgym
