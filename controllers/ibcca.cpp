// IBCCA: BBR whose ProbeRTT follows congestion. Zuo et al., "Performance Study of Improved BBR
// Congestion Control Algorithm using QUIC in Wireless LAN", section III.B ("the paper" below).
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "controllers/bbr.hpp"
#include "controllers/controller.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"

namespace quicgym {

namespace {

struct IbccaParameters {
    double test_rounds = 1.0;
    double derate_tests = 3.0;
    double first_extension_ms = 1.0;
    double restart_after_s = 10.0;
    double expired_rtprop_follows = 0.0;  // 0 or 1
    double rise_restarts_cycle = 0.0;     // 0 or 1
    double blocked_by_window = 0.0;       // 0 or 1
    double stay_needs_both = 0.0;         // 0 or 1
    std::vector<double> gain_cycle_without_rise = BbrParameters().gain_cycle;
};

// BBR with its own answer to when ProbeRTT begins and how long it lasts. Everything else is BBR's.
class Ibcca final : public Bbr {
public:
    Ibcca(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Ibcca>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_ack_standing_by(const AckEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;

protected:
    const std::vector<double>& followed_gain_cycle() const override {
        return follows_cycle_without_rise_ ? parameters_.gain_cycle_without_rise : gain_cycle();
    }

private:
    static constexpr std::size_t kMostTests = 16;

    bool finish_test(const AckEvent& event);
    std::uint64_t count_blocked(const AckEvent& event);
    void choose_gain_cycle(Time now, bool in_probe_bw, bool tested);
    void follow_cycle_without_rise(bool follows);
    Time derate() const;
    void extend_probe_rtt(Time now, std::uint64_t blocked);

    IbccaParameters parameters_;
    std::array<Time, kMostTests + 1> delays_{};  // of the tests, the latest first
    std::size_t tests_ = 0;                      // how many of them are filled
    std::uint64_t rounds_in_test_ = 0;
    Time test_minimum_ = kNever;
    bool follows_cycle_without_rise_ = false;
    double extension_ms_ = 0.0;         // the paper's tin
    std::uint64_t blocked_before_ = 0;  // events before ProbeBW was last entered

    // Blocked by the congestion window, outside of ProbeRTT.
    std::uint64_t window_events_ = 0;
    std::uint64_t window_in_force_ = 0;  // since the last ACK
    bool window_is_full_ = false;        // has been, in this packet-timed round
    bool window_was_full_ = false;       // in the round before
};

constexpr char kName[] = "ibcca";
constexpr double kSmallestExtensionMs = 1e-6;  // a product that reached 0 would never grow again

const ParameterTable<IbccaParameters>& table() {
    using P = IbccaParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::test_rounds>("test_rounds", 1.0, 1000.0, "rounds",
                                   "Length of a test, whose delay is its lowest RTT, in packet-timed rounds",
                                   "IBCCA III.B leaves it open")
            .logarithmic(),
        number<P, &P::derate_tests>("derate_tests", 1.0, 16.0, "tests",
                                    "Number of differences between successive tests that derate sums up",
                                    "IBCCA equation 3"),
        number<P, &P::first_extension_ms>("first_extension_ms", 0.001, 10000.0, "ms",
                                          "tin when ProbeRTT begins, before its first extension",
                                          "IBCCA equation 2; printed as 0, which can never grow")
            .logarithmic(),
        number<P, &P::restart_after_s>("restart_after_s", 0.1, 10000.0, "s",
                                       "A ProbeRTT that is to last longer ends at once in Startup",
                                       "IBCCA III.B, the longest waiting time set by BBR")
            .logarithmic(),
        number<P, &P::expired_rtprop_follows>(
            "expired_rtprop_follows", 0.0, 1.0, "",
            "While ProbeBW outlasts RTprop's window, 0: RTprop stays; 1: the latest sample replaces it",
            "IBCCA III.B leaves it open"),
        number<P, &P::rise_restarts_cycle>(
            "rise_restarts_cycle", 0.0, 1.0, "",
            "What a test does whose delay is above the last one's. 0: gain_cycle applies until a test without "
            "a rise, and the phase continues; 1: gain_cycle, which then always applies, begins anew",
            "IBCCA Algorithm 1, lines 6 and 7"),
        number<P, &P::blocked_by_window>(
            "blocked_by_window", 0.0, 1.0, "",
            "1: the sender also counts as blocked when a round finds the congestion window full while data "
            "waits, and the round before did not; 0: send buffer and flow control alone",
            "IBCCA III.B leaves open what Blocked is"),
        number<P, &P::stay_needs_both>(
            "stay_needs_both", 0.0, 1.0, "",
            "ProbeBW outlasts RTprop's window 0: while derate is not negative or nothing was blocked; 1: while "
            "both is so, and otherwise BBR's ProbeRTT follows",
            "0: IBCCA Algorithm 1, line 4; 1: the text after equation 3"),
        list<P, &P::gain_cycle_without_rise>(
            "gain_cycle_without_rise", 0.1, 10.0, "",
            "Pacing gains of ProbeBW while the delay does not rise; not used with rise_restarts_cycle 1",
            "IBCCA III.A, the cycle of BBR")
            .logarithmic(),
    };
    return rows;
}

BbrParameters bbr_defaults() {
    BbrParameters parameters;
    parameters.gain_cycle = {0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.25};  // Algorithm 1, line 7
    return parameters;
}

// By squaring: std::pow differs between C libraries and processors.
double power(double base, std::uint64_t exponent) {
    double result = 1.0;
    for (; exponent > 0; exponent /= 2, base *= base) {
        if (exponent % 2 == 1) result *= base;
    }
    return result;
}

Ibcca::Ibcca(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : Bbr(kName, select(table(), values, false), max_datagram_bytes),
      parameters_(with_values(table(), kName, IbccaParameters(), select(table(), values, true))),
      window_in_force_(window_bytes_) {}

// Algorithm 1. Its answers are set before BBR handles the ACK.
void Ibcca::on_ack(const AckEvent& event) {
    const ControllerMode before = mode();
    const bool tested = finish_test(event);
    const std::uint64_t events = count_blocked(event);
    const std::uint64_t blocked = events - blocked_before_;  // BCount
    const bool congested = blocked > 0 && derate() < 0;
    const bool in_probe_bw = before == ControllerMode::probe_bw;
    // Lines 4 and 5, 9 and 10.
    const bool stays = is_on(parameters_.stay_needs_both) ? blocked == 0 && derate() >= 0 : !congested;
    probe_rtt_rule_.may_begin = !in_probe_bw || !stays;
    probe_rtt_rule_.begins_now = in_probe_bw && congested;
    probe_rtt_rule_.rtprop_expires = !in_probe_bw || !stays || is_on(parameters_.expired_rtprop_follows);
    choose_gain_cycle(event.now, in_probe_bw, tested);
    // Lines 11 to 13.
    if (before == ControllerMode::probe_rtt && tested && congested) extend_probe_rtt(event.now, blocked);
    Bbr::on_ack(event);
    window_in_force_ = window_bytes_;
    if (mode() == before) return;
    if (mode() == ControllerMode::probe_bw) {
        blocked_before_ = events;
    } else if (mode() == ControllerMode::probe_rtt) {
        extension_ms_ = parameters_.first_extension_ms;
        probe_rtt_rule_.extension = 0;
    }
}

// Lines 6 and 7. They have no branch for a delay that does not rise: BBR's own cycle applies then.
void Ibcca::choose_gain_cycle(Time now, bool in_probe_bw, bool tested) {
    const bool rises = in_probe_bw && tested && tests_ > 1 && delays_[0] > delays_[1];
    if (is_on(parameters_.rise_restarts_cycle)) {
        follow_cycle_without_rise(false);
        if (rises) restart_gain_cycle(now);
    } else if (tested || !in_probe_bw) {
        follow_cycle_without_rise(!rises);
    }
}

void Ibcca::follow_cycle_without_rise(bool follows) {
    if (std::exchange(follows_cycle_without_rise_, follows) != follows) on_other_gain_cycle();
}

// Tests go on; blocked events count from the moment at which this controller is active again.
void Ibcca::on_ack_standing_by(const AckEvent& event) {
    finish_test(event);
    blocked_before_ = event.blocked_events + window_events_;
    window_in_force_ = UINT64_MAX;  // another one's window is
    window_is_full_ = window_was_full_ = false;
    Bbr::on_ack_standing_by(event);
}

// All blocked events so far. ProbeRTT cuts the window on purpose, so that a full one says nothing there. One
// event for a round, not for an ACK: at the limit every ACK lets a packet out and finds the window full
// again.
std::uint64_t Ibcca::count_blocked(const AckEvent& event) {
    if (!is_on(parameters_.blocked_by_window)) return event.blocked_events + window_events_;
    if (mode() == ControllerMode::probe_rtt) {
        window_is_full_ = window_was_full_ = false;
        return event.blocked_events + window_events_;
    }
    if (event.round_start) window_was_full_ = std::exchange(window_is_full_, false);
    // Before this ACK there was no room for one more datagram.
    const bool full =
        window_in_force_ - std::min(window_in_force_, event.prior_in_flight_bytes) < max_datagram_bytes_;
    if (full && event.unsent_bytes > 0 && !window_is_full_) {
        window_is_full_ = true;
        window_events_ += window_was_full_ ? 0 : 1;
    }
    return event.blocked_events + window_events_;
}

// True when this ACK ends a test and its delay is known.
bool Ibcca::finish_test(const AckEvent& event) {
    bool finished = false;
    if (event.round_start && ++rounds_in_test_ >= static_cast<std::uint64_t>(parameters_.test_rounds)) {
        rounds_in_test_ = 0;
        finished = test_minimum_ != kNever;
        if (finished) {
            std::copy_backward(delays_.begin(), delays_.end() - 1, delays_.end());
            delays_[0] = std::exchange(test_minimum_, kNever);
            tests_ = std::min(tests_ + 1, delays_.size());
        }
    }
    if (event.measured_rtt > 0) test_minimum_ = std::min(test_minimum_, event.measured_rtt);
    return finished;
}

// Equation 3. The sum of successive differences is the difference of its two ends.
Time Ibcca::derate() const {
    const auto count = static_cast<std::size_t>(parameters_.derate_tests);
    return tests_ > count ? delays_[count] - delays_[0] : 0;
}

// Equation 2, and the restart that follows it in the text.
void Ibcca::extend_probe_rtt(Time now, std::uint64_t blocked) {
    const double ratio = static_cast<double>(delays_[0]) / static_cast<double>(delays_[1]);
    const double longest_ms = parameters_.restart_after_s * 1e3;
    extension_ms_ = std::clamp(extension_ms_ * power(ratio, blocked), kSmallestExtensionMs, longest_ms);
    probe_rtt_rule_.extension += static_cast<Time>(extension_ms_ * 1e6);
    const Time longest = static_cast<Time>(longest_ms * 1e6);
    if (probe_rtt_duration() + probe_rtt_rule_.extension > longest) restart(now);
}

// Everything is checked before anything changes, and errors list the parameters of both tables.
void Ibcca::set_parameters(const ParameterValues& values) {
    complete_parameters(find_controller(kName), values);
    parameters_ = with_values(table(), kName, parameters_, select(table(), values, true));
    Bbr::set_parameters(select(table(), values, false));
}

ParameterValues Ibcca::parameters() const {
    ParameterValues values = Bbr::parameters();
    values.merge(to_values(table(), parameters_));
    return values;
}

ControllerSpecification ibcca_specification() {
    ControllerSpecification specification = {
        kName, "IBCCA: BBR that drains the queue when delay rises and its sender is blocked",
        "Improved BBR congestion control algorithm in wireless LAN, section III.B",
        specifications(table(), IbccaParameters()), construct<Ibcca>};
    const auto inherited = specifications(bbr_parameter_table(), bbr_defaults());
    specification.parameters.insert(specification.parameters.end(), inherited.begin(), inherited.end());
    return specification;
}

const Registration registered(ibcca_specification, {.place = 90, .baseline_place = 60});

}  // namespace

}  // namespace quicgym
