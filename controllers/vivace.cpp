#include "controllers/vivace.hpp"

#include <algorithm>
#include <cmath>

#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"

namespace quicgym {

namespace {

constexpr char kName[] = "vivace";
constexpr double kBytesPerSecondPerMbps = 125'000.0;
constexpr double kSlowestDatagramsPerRtt = 2.0;  // RFC 9002 7.2, kMinimumWindow
// An interval with less than this share of its rate was limited by the application or by flow control.
constexpr double kUsedShare = 0.9;

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
                                     "PCC Allegro, NSDI 2015, section 3.1; Vivace paper 4.3"),
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
                                    "PCC-Uspace, the authors' implementation")
            .logarithmic(1.0),
        number<P, &P::smallest_interval_packets>("smallest_interval_packets", 2.0, 1000.0, "packets",
                                                 "A monitor interval lasts for one RTT and so many packets",
                                                 "PCC-Uspace, the authors' implementation")
            .logarithmic(),
        number<P, &P::window_gain>("window_gain", 1.2, 10.0, "",
                                   "The window is this times rate * smoothed RTT, and the initial window",
                                   "RFC 9002 7: what is in flight is limited"),
    };
    return rows;
}

double seconds(Time time) {
    return static_cast<double>(time) * 1e-9;
}

}  // namespace

// ---- monitor interval ----------------------------------------------------------------------

void MonitorInterval::on_rtt(Time sent_time, Time rtt) {
    const double time = seconds(sent_time - begin_);
    samples_ += 1.0;
    sum_time_ += time;
    sum_rtt_ += seconds(rtt);
    sum_time_time_ += time * time;
    sum_time_rtt_ += time * seconds(rtt);
}

double MonitorInterval::sent_rate() const {
    return sent_bytes_ / seconds(std::max<Time>(end_ - begin_, 1));
}

double MonitorInterval::rtt_gradient() const {
    const double spread = samples_ * sum_time_time_ - sum_time_ * sum_time_;
    // Rounding leaves a little of it when all samples are of one time.
    if (spread <= 1e-9 * samples_ * sum_time_time_) return 0.0;
    return (samples_ * sum_time_rtt_ - sum_time_ * sum_rtt_) / spread;
}

// ---- sending and measuring -----------------------------------------------------------------

Vivace::Vivace(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : Controller(max_datagram_bytes),
      parameters_(with_values(table(), kName, VivaceParameters(), values)),
      rate_(static_cast<double>(initial_window_bytes(max_datagram_bytes)) / seconds(kInitialRtt)) {
    pacing_rate_ = rate_;
    set_window();
}

// The gap behind a packet has the rate that was set before the packet. So an interval takes its rate one
// packet early, and each of its packets has a gap of that rate behind it.
void Vivace::on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t) {
    if (ending_) {
        intervals_[current_++].end(now);
        ending_ = false;
    }
    if (current_ == planned_) {
        if (++packets_afterwards_ == kPacketThreshold) known_after_ = now;
        return;
    }
    MonitorInterval& interval = intervals_[current_];
    if (!interval.begun()) interval.begin(now);
    interval.on_packet_sent(bytes);
    if (interval.age(now) < smallest_duration(interval)) return;
    ending_ = true;
    pacing_rate_ = current_ + 1 < planned_ ? intervals_[current_ + 1].rate() : rate_;
}

// About one RTT, section 4; and enough packets to see a gradient.
Time Vivace::smallest_duration(const MonitorInterval& interval) const {
    const double bytes = parameters_.smallest_interval_packets * static_cast<double>(max_datagram_bytes_);
    return std::max(smoothed_rtt_, static_cast<Time>(bytes / interval.rate() * 1e9));
}

MonitorInterval* Vivace::covering(Time sent_time) {
    for (std::size_t i = 0; i < planned_; ++i) {
        if (intervals_[i].covers(sent_time)) return &intervals_[i];
    }
    return nullptr;
}

void Vivace::on_packet_lost(const LostPacket& packet) {
    if (MonitorInterval* interval = covering(packet.sent_time)) interval->on_packet_lost(packet.size_bytes);
}

// RFC 9002 7.1: an increase of the ECN-CE count is treated as losses.
void Vivace::on_ecn(const EcnEvent& event) {
    if (MonitorInterval* interval = covering(event.largest_acked_sent_time))
        interval->on_packet_lost(event.newly_marked_packets * max_datagram_bytes_);
}

void Vivace::on_ack(const AckEvent& event) {
    if (smoothed_rtt_ == 0 && event.smoothed_rtt > 0)
        rate_ = static_cast<double>(initial_window_bytes(max_datagram_bytes_)) / seconds(event.smoothed_rtt);
    smoothed_rtt_ = event.smoothed_rtt;
    if (event.rtt > 0) {
        if (MonitorInterval* interval = covering(event.largest_acked_sent_time))
            interval->on_rtt(event.largest_acked_sent_time, event.rtt);
    }
    if (planned_ == 0 || all_is_known(event)) {
        if (planned_ > 0) decide();
        plan(*event.random);
    }
    set_window();
}

// Behind an acknowledged packet, all that was sent kPacketThreshold before is acknowledged or lost.
bool Vivace::all_is_known(const AckEvent& event) const {
    return packets_afterwards_ >= kPacketThreshold && event.largest_acked_sent_time >= known_after_;
}

// Section 4.3, timeout of a monitor interval: half the rate. What is being measured says nothing any more.
void Vivace::on_persistent_congestion(Time) {
    set_rate(rate_ / 2.0);
    pacing_rate_ = rate_;
    starting_ = false;
    forget_intervals();
    set_window();
}

void Vivace::forget_intervals() {
    planned_ = current_ = 0;
    ending_ = false;
}

// ---- deciding ------------------------------------------------------------------------------

// Equation 1.
double Vivace::utility(const MonitorInterval& interval) const {
    const double rate_mbps = interval.sent_rate() / kBytesPerSecondPerMbps;
    const double gradient = interval.rtt_gradient();
    const double filtered = std::abs(gradient) < parameters_.gradient_tolerance ? 0.0 : gradient;
    return std::pow(rate_mbps, parameters_.throughput_exponent) -
           parameters_.latency_coefficient * rate_mbps * filtered -
           parameters_.loss_coefficient * rate_mbps * interval.loss_rate();
}

void Vivace::plan(Random& random) {
    if (starting_) {
        planned_ = 1;
        intervals_[0] = MonitorInterval(rate_);
    } else {
        planned_ = 2 * static_cast<std::size_t>(parameters_.probing_pairs);
        for (std::size_t i = 0; i < planned_; i += 2) {
            // In random order, so that what else changes in the meantime favours neither.
            const double step = random.below(2) == 0 ? parameters_.probing_step : -parameters_.probing_step;
            intervals_[i] = MonitorInterval(rate_ * (1.0 + step));
            intervals_[i + 1] = MonitorInterval(rate_ * (1.0 - step));
        }
    }
    current_ = 0;
    ending_ = false;
    packets_afterwards_ = 0;
    known_after_ = kNever;
    pacing_rate_ = intervals_[0].rate();
}

void Vivace::decide() {
    for (std::size_t i = 0; i < planned_; ++i) {
        if (intervals_[i].sent_rate() < kUsedShare * intervals_[i].rate()) return;  // measured again
    }
    if (starting_) {
        decide_starting();
    } else {
        decide_probing();
    }
}

// Section 4: the rate doubles until the utility falls for the first time.
void Vivace::decide_starting() {
    const double reached = utility(intervals_[0]);
    if (reached > last_utility_) {
        last_utility_ = reached;
        set_rate(rate_ * 2.0);
    } else {
        starting_ = false;
        set_rate(rate_ / 2.0);
    }
}

// Section 4.2, the gradient of the utility; pairs that contradict one another are measured again.
void Vivace::decide_probing() {
    double sum = 0.0;
    double sign = 0.0;
    for (std::size_t i = 0; i < planned_; i += 2) {
        const MonitorInterval& one = intervals_[i];
        const MonitorInterval& other = intervals_[i + 1];
        const double difference_mbps = (one.sent_rate() - other.sent_rate()) / kBytesPerSecondPerMbps;
        if (difference_mbps * (one.rate() - other.rate()) <= 0.0) return;  // not sent as planned
        const double gradient = (utility(one) - utility(other)) / difference_mbps;
        if (gradient == 0.0 || gradient * sign < 0.0) return;
        sign = gradient > 0.0 ? 1.0 : -1.0;
        sum += gradient;
    }
    change_rate(sum * 2.0 / static_cast<double>(planned_));
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
        std::abs(amplifier * parameters_.rate_change_factor * gradient) * kBytesPerSecondPerMbps / rate_;
    const double boundary = parameters_.first_boundary + boundary_exceeded_ * parameters_.boundary_step;
    if (wanted > boundary) {
        boundary_exceeded_ += 1.0;
    } else if (boundary_exceeded_ > 0.0) {
        // The smallest k with which the change fits; without steps there is none but 0.
        const double missing = std::max(wanted - parameters_.first_boundary, 0.0);
        boundary_exceeded_ = missing > 0.0 ? std::ceil(missing / parameters_.boundary_step) : 0.0;
    }
    set_rate(rate_ * (1.0 + direction * std::min(wanted, boundary)));
}

void Vivace::set_rate(double rate) {
    rate_ =
        std::max(rate, kSlowestDatagramsPerRtt * static_cast<double>(max_datagram_bytes_) / rtt_seconds());
}

double Vivace::rtt_seconds() const {
    return seconds(smoothed_rtt_ > 0 ? smoothed_rtt_ : kInitialRtt);
}

// ---- the rest ------------------------------------------------------------------------------

// Rate-based: the window only bounds what is in flight when acknowledgements stay away.
void Vivace::set_window() {
    const double bytes = parameters_.window_gain * rate_ * rtt_seconds();
    window_bytes_ = static_cast<std::uint64_t>(bytes) + initial_window_bytes(max_datagram_bytes_);
}

// What was being measured ended with the switch: the rate is another one's now.
void Vivace::on_ack_standing_by(const AckEvent& event) {
    smoothed_rtt_ = event.smoothed_rtt;
    forget_intervals();
}

// The window is far above what is in flight.
std::uint64_t Vivace::window_to_hand_over() const {
    return static_cast<std::uint64_t>(rate_ * rtt_seconds());
}

// Begins with the window's rate and nothing learnt: gains, swings and utility are of other rates.
void Vivace::take_over(std::uint64_t window_bytes, bool slow_start) {
    starting_ = slow_start;
    set_rate(static_cast<double>(window_bytes) / rtt_seconds());
    pacing_rate_ = rate_;
    last_utility_ = direction_ = consecutive_ = swings_ = boundary_exceeded_ = 0.0;
    forget_intervals();
    set_window();
}

void Vivace::set_parameters(const ParameterValues& values) {
    parameters_ = with_values(table(), kName, parameters_, values);
}

ParameterValues Vivace::parameters() const {
    return to_values(table(), parameters_);
}

ControllerSnapshot Vivace::snapshot() const {
    return snapshot_in(starting_ ? ControllerMode::slow_start : ControllerMode::congestion_avoidance);
}

namespace {

ControllerSpecification vivace_specification() {
    return {kName, "PCC Vivace: the rate follows the gradient of a utility of throughput, delay and loss",
            "Dong et al., NSDI 2018", specifications(table(), VivaceParameters()), construct<Vivace>};
}

const Registration registered(vivace_specification, {.switching_place = 13});

}  // namespace

}  // namespace quicgym
