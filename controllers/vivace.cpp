// PCC Vivace with its latency utility, Dong et al., "PCC Vivace: Online-Learning Congestion Control"
// (NSDI 2018; "the paper" below), for QUIC.
#include <algorithm>
#include <cmath>

#include "controllers/monitor_intervals.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"

namespace quicgym {

namespace {

constexpr char kName[] = "vivace";
constexpr double kSlowestDatagramsPerRtt = 2.0;  // RFC 9002 7.2, kMinimumWindow
constexpr double kDoubtfulPackets = 2.0;
constexpr double kDoubtfulLossRate = 0.05;

struct VivaceParameters {
    double throughput_exponent = VivaceUtility().throughput_exponent;
    double latency_coefficient = VivaceUtility().latency_coefficient;
    double loss_coefficient = VivaceUtility().loss_coefficient;
    double probing_step = 0.05;
    double probing_pairs = 1.0;
    double double_check = 1.0;  // 0 or 1
    double rate_change_factor = 1.0;
    double first_boundary = 0.05;
    double boundary_step = 0.1;
    double gradient_tolerance = 0.01;
    double swing_buffer = 0.0;
    double smallest_interval_packets = 10.0;
    double window_gain = 2.0;
};

const ParameterTable<VivaceParameters>& table() {
    using P = VivaceParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::throughput_exponent>("throughput_exponent", 0.1, 0.999, "",
                                           "t in u = x^t - b * x * dRTT/dT - c * x * L, with x in Mbps",
                                           "Vivace paper, equation 1"),
        number<P, &P::latency_coefficient>("latency_coefficient", 0.0, 1e6, "", "b",
                                           "Vivace paper, equation 1 and section 3.1")
            .logarithmic(1.0),
        number<P, &P::loss_coefficient>("loss_coefficient", 0.0, 1e4, "", "c",
                                        "Vivace paper, equation 1 and section 3.2")
            .logarithmic(0.1),
        number<P, &P::probing_step>("probing_step", 0.001, 0.5, "",
                                    "epsilon: intervals in pairs have the rates r * (1 + epsilon) and "
                                    "r * (1 - epsilon)",
                                    "Vivace paper, section 4.2")
            .logarithmic(),
        number<P, &P::probing_pairs>("probing_pairs", 1.0, 4.0, "pairs",
                                     "Pairs of intervals per decision, which must agree",
                                     "Vivace paper, section 4.2; 2 in PCC Allegro, NSDI 2015, section 3.1"),
        number<P, &P::double_check>(
            "double_check", 0.0, 1.0, "",
            "1: a rise is measured again where the slower intervals lost over two packets more and 5% are lost in "
            "all, and a confirmed one is averaged with the first; 0: the rise counts at once",
            "Vivace paper, section 4.3"),
        number<P, &P::rate_change_factor>("rate_change_factor", 0.001, 100.0, "Mbps²",
                                          "theta0: the rate changes by theta0 * gradient * m(tau)",
                                          "Vivace paper, section 4.2")
            .logarithmic(),
        number<P, &P::first_boundary>("first_boundary", 0.001, 1.0, "",
                                      "omega0: first limit of a change, as a share of the rate",
                                      "Vivace paper, section 4.2")
            .logarithmic(),
        number<P, &P::boundary_step>("boundary_step", 0.0, 1.0, "",
                                     "delta: what each change beyond the limit adds to it",
                                     "Vivace paper, section 4.2")
            .logarithmic(0.01),
        number<P, &P::gradient_tolerance>("gradient_tolerance", 0.0, 1.0, "",
                                          "An RTT gradient smaller than this counts as 0",
                                          "Vivace paper, section 4.3")
            .logarithmic(0.001),
        number<P, &P::swing_buffer>("swing_buffer", 0.0, 100.0, "decisions",
                                    "After turns, at most so many decisions do not raise tau; 0: none",
                                    "PCC-Uspace, branch NSDI-2018; the paper has none")
            .logarithmic(1.0),
        number<P, &P::smallest_interval_packets>("smallest_interval_packets", 2.0, 1000.0, "packets",
                                                 "A monitor interval lasts for one RTT and so many packets",
                                                 "the paper leaves it open")
            .logarithmic(),
        number<P, &P::window_gain>("window_gain", 1.2, 10.0, "",
                                   "The window is this times rate * smoothed RTT, and the initial window",
                                   "RFC 9002 7: what is in flight is limited"),
    };
    return rows;
}

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
    void on_persistent_congestion(Time now) override {
        doubted_gradient_ = 0.0;
        MonitoringController::on_persistent_congestion(now);
    }

private:
    bool is_long_enough(const MonitorInterval& interval, Time now) const override;
    double probing_step() const override { return parameters_.probing_step; }
    std::size_t probing_pairs() const override { return static_cast<std::size_t>(parameters_.probing_pairs); }
    double smallest_rate() const override {
        return kSlowestDatagramsPerRtt * static_cast<double>(max_datagram_bytes_) / rtt_seconds();
    }
    double window_gain() const override { return parameters_.window_gain; }
    void decide() override;

    double utility(const MonitorInterval& interval) const;
    void decide_starting();
    void decide_probing();
    bool is_doubtful() const;
    void change_rate(double gradient);

    VivaceParameters parameters_;
    double last_utility_ = 0.0;       // of the starting phase
    double doubted_gradient_ = 0.0;   // of the measurement that is being checked; 0: none
    double direction_ = 0.0;          // 1 up, -1 down, 0 none yet
    double consecutive_ = 0.0;        // the paper's tau
    double swings_ = 0.0;             // left in the swing buffer
    double boundary_exceeded_ = 0.0;  // the paper's k
};

// About one RTT, section 4; and enough packets to see a gradient.
bool Vivace::is_long_enough(const MonitorInterval& interval, Time now) const {
    const double bytes = parameters_.smallest_interval_packets * static_cast<double>(max_datagram_bytes_);
    return interval.age(now) >= std::max(smoothed_rtt(), static_cast<Time>(bytes / interval.rate() * 1e9));
}

double Vivace::utility(const MonitorInterval& interval) const {
    const VivaceUtility utility{parameters_.throughput_exponent, parameters_.latency_coefficient,
                                parameters_.loss_coefficient};
    const double gradient = interval.rtt_gradient();
    const double filtered = std::abs(gradient) < parameters_.gradient_tolerance ? 0.0 : gradient;
    return utility.of(interval.sent_mbps(), filtered, interval.loss_rate());
}

void Vivace::decide() {
    if (phase_ == Phase::starting) {
        decide_starting();
    } else {
        decide_probing();
    }
}

// Section 4: the rate doubles until the utility falls for the first time.
void Vivace::decide_starting() {
    const double reached = utility(interval(0));
    if (reached > last_utility_) {
        last_utility_ = reached;
        set_rate(rate() * 2.0);
    } else {
        phase_ = Phase::probing;
        set_rate(rate() / 2.0);
    }
}

// Section 4.2, the gradient of the utility; pairs that contradict one another are measured again.
void Vivace::decide_probing() {
    double sum = 0.0;
    double sign = 0.0;
    for (std::size_t i = 0; i < planned(); i += 2) {
        const MonitorInterval& one = interval(i);
        const MonitorInterval& other = interval(i + 1);
        const double difference_mbps = one.sent_mbps() - other.sent_mbps();
        if (difference_mbps * (one.rate() - other.rate()) <= 0.0) return;  // not sent as planned
        const double gradient = (utility(one) - utility(other)) / difference_mbps;
        if (gradient == 0.0 || gradient * sign < 0.0) return;
        sign = gradient > 0.0 ? 1.0 : -1.0;
        sum += gradient;
    }
    double gradient = 2.0 * sum / static_cast<double>(planned());
    if (parameters_.double_check >= 0.5 && gradient > 0.0 && is_doubtful()) {
        if (doubted_gradient_ == 0.0) {
            doubted_gradient_ = gradient;
            return;
        }
        gradient = (gradient + doubted_gradient_) / 2.0;
    }
    doubted_gradient_ = 0.0;
    change_rate(gradient);
}

// Section 4.3: sending faster is hardly the reason for less loss. How much less, and at which loss rate, is
// from the code of the submission (PCC-Uspace, branch NSDI-2018).
bool Vivace::is_doubtful() const {
    double sent = 0.0, lost_faster = 0.0, lost_slower = 0.0;
    for (std::size_t i = 0; i < planned(); i += 2) {
        const bool first_is_faster = interval(i).rate() > interval(i + 1).rate();
        sent += interval(i).sent_bytes() + interval(i + 1).sent_bytes();
        lost_faster += interval(first_is_faster ? i : i + 1).lost_bytes();
        lost_slower += interval(first_is_faster ? i + 1 : i).lost_bytes();
    }
    return lost_faster > 0.0 &&
           lost_slower - lost_faster > kDoubtfulPackets * static_cast<double>(max_datagram_bytes_) &&
           lost_faster + lost_slower >= kDoubtfulLossRate * sent;
}

// Section 4.2: confidence amplifier and dynamic change boundary.
void Vivace::change_rate(double gradient) {
    const double direction = gradient > 0.0 ? 1.0 : -1.0;
    if (direction != direction_) {
        direction_ = direction;
        consecutive_ = 1.0;
        swings_ = std::min(swings_ + 1.0, parameters_.swing_buffer);
        boundary_exceeded_ = 0.0;
    } else if (swings_ >= 1.0) {
        swings_ -= 1.0;
    } else {
        consecutive_ += 1.0;
    }
    const double amplifier = consecutive_ <= 3.0 ? consecutive_ : 2.0 * consecutive_ - 3.0;  // m(tau)
    const double wanted =
        std::abs(amplifier * parameters_.rate_change_factor * gradient) * kBytesPerSecondPerMbps / rate();
    const double boundary = parameters_.first_boundary + boundary_exceeded_ * parameters_.boundary_step;
    if (wanted > boundary) {
        boundary_exceeded_ += 1.0;
    } else if (boundary_exceeded_ > 0.0) {
        // The smallest k with which the change fits; without steps there is none but 0.
        const double missing = std::max(wanted - parameters_.first_boundary, 0.0);
        boundary_exceeded_ = missing > 0.0 ? std::ceil(missing / parameters_.boundary_step) : 0.0;
    }
    set_rate(rate() * (1.0 + direction * std::min(wanted, boundary)));
}

ControllerSpecification vivace_specification() {
    return {kName, "PCC Vivace: the rate follows the gradient of a utility of throughput, delay and loss",
            "Dong et al., NSDI 2018", specifications(table(), VivaceParameters()), construct<Vivace>};
}

const Registration registered(vivace_specification);

}  // namespace

}  // namespace quicgym
