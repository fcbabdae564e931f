#include "controllers/copa.hpp"

#include <algorithm>

#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"

namespace quicgym {

namespace {

const ParameterTable<CopaParameters>& table() {
    using P = CopaParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::delta>("delta", 0.001, 10.0, "1/packets",
                             "Weight of delay in default mode: the flow keeps 1 / delta packets in the queue",
                             "Copa paper, equation 1 and section 2.2")
            .logarithmic(),
        number<P, &P::competitive_mode>("competitive_mode", 0.0, 1.0, "",
                                        "1: delta falls against flows that fill the buffer; 0: it never does",
                                        "Copa paper, section 2.2"),
        number<P, &P::min_rtt_window_s>("min_rtt_window_s", 0.1, 10000.0, "s",
                                        "RTTmin is the lowest RTT of this long", "Copa paper, section 2.1")
            .logarithmic(),
        number<P, &P::standing_window_rtts>("standing_window_rtts", 0.01, 10.0, "smoothed RTTs",
                                            "RTTstanding is the lowest RTT of this long",
                                            "Copa paper, section 2.1")
            .logarithmic(),
        number<P, &P::nearly_empty_rtts>("nearly_empty_rtts", 1.0, 1000.0, "smoothed RTTs",
                                         "Competitive mode begins when the queue was not nearly empty for "
                                         "this long",
                                         "Copa paper, section 2.2")
            .logarithmic(),
        number<P, &P::nearly_empty_share>("nearly_empty_share", 0.0, 1.0, "",
                                          "The queue is nearly empty up to this share of RTTmax - RTTmin",
                                          "Copa paper, section 2.2"),
        number<P, &P::velocity_rounds>("velocity_rounds", 0.0, 1000.0, "rounds",
                                       "Velocity begins to double after this many rounds in one direction",
                                       "Copa paper, section 2.1")
            .logarithmic(1.0),
        number<P, &P::pacing_gain>("pacing_gain", 1.0, 4.0, "", "N in pacing rate = N * window / RTTstanding",
                                   "Copa paper, section 2.1"),
        number<P, &P::loss_response>("loss_response", 0.0, 1.0, "",
                                     "1: a loss rate above 30% cuts the window; 0: losses do so in "
                                     "competitive mode alone, as in mvfst",
                                     "genericCC, the authors' implementation, at 18299d6: ReduceOnLoss"),
    };
    return rows;
}

constexpr char kName[] = "copa";
constexpr double kMinimumWindow = static_cast<double>(kMinimumWindowDatagrams);
constexpr double kMaxRttWindowRtts = 4.0;  // section 2.2: RTTmax is of the past four RTTs
// genericCC: what is left of the window after a loss rate, judged over so many RTTs and more packets.
constexpr double kLossReduction = 0.7;
constexpr double kHighLossRate = 0.3;
constexpr double kLossRateRtts = 2.0;
constexpr std::uint64_t kLossRatePackets = 20;

std::uint64_t rtts(double count, Time smoothed_rtt) {
    return static_cast<std::uint64_t>(count * static_cast<double>(smoothed_rtt));
}

}  // namespace

Copa::Copa(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : Controller(max_datagram_bytes),
      parameters_(with_values(table(), kName, CopaParameters(), values)),
      packets_per_byte_(1.0 / static_cast<double>(max_datagram_bytes)),
      window_(static_cast<double>(initial_window_bytes(max_datagram_bytes)) * packets_per_byte_),
      round_start_window_(window_),
      inverse_delta_(1.0 / parameters_.delta) {
    publish();
}

// Section 2.1, steps 1 to 4.
void Copa::on_ack(const AckEvent& event) {
    recovery_.on_ack(event.largest_acked_sent_time);
    if (event.measured_rtt > 0) update_delays(event);
    update_mode(event);
    if (event.round_start) end_round();

    const double acked_packets = static_cast<double>(event.newly_acked_bytes) * packets_per_byte_;
    const bool below_target = is_below_target();
    if (!below_target) slow_start_ = false;
    turn_to(below_target ? Direction::up : Direction::down);
    const double step = slow_start_ ? 1.0 : std::min(velocity_ * inverse_delta_ / window_, 1.0);
    if (!below_target) {
        window_ = std::max(window_ - step * acked_packets, kMinimumWindow);
    } else if (!event.app_limited) {  // RFC 9002 7.8: no growth while underutilised
        window_ += step * acked_packets;
    }
    if (is_on(parameters_.loss_response)) respond_to_loss(event);
    publish();
}

// The paper has no such rule: its authors' implementation has it, in both modes.
void Copa::respond_to_loss(const AckEvent& event) {
    acked_packets_ += event.newly_acked_packets;
    const std::uint64_t packets = acked_packets_ + lost_packets_;
    // An ACK without an RTT sample, as reordering brings them, does not say how long two RTTs are.
    if (packets <= kLossRatePackets || event.measured_rtt == 0 ||
        event.now <= judged_time_ + static_cast<Time>(rtts(kLossRateRtts, event.measured_rtt)))
        return;
    if (static_cast<double>(lost_packets_) > kHighLossRate * static_cast<double>(packets))
        window_ = std::max(kLossReduction * window_, kMinimumWindow);
    judged_time_ = event.now;
    acked_packets_ = lost_packets_ = 0;
}

void Copa::update_delays(const AckEvent& event) {
    const auto now = static_cast<std::uint64_t>(event.now);
    standing_rtt_.update(event.measured_rtt, now, rtts(parameters_.standing_window_rtts, event.smoothed_rtt));
    min_rtt_.update(event.measured_rtt, now, static_cast<std::uint64_t>(parameters_.min_rtt_window_s * 1e9));
    max_rtt_.update(event.measured_rtt, now, rtts(kMaxRttWindowRtts, event.smoothed_rtt));
    // Or a sample that has left the long window, but not yet the short one, would be a negative delay.
    if (standing_rtt_.best() < min_rtt_.best()) min_rtt_.update(standing_rtt_.best(), now, 0);
}

// Section 2.2: with Copa flows alone the queue is nearly empty at least once in five round trips.
void Copa::update_mode(const AckEvent& event) {
    const double oscillation = static_cast<double>(max_rtt_.best() - min_rtt_.best());
    // An ACK frame measures the RTT of the last of its packets alone, which has waited for those before it. A
    // delay shorter than they take cannot be told from none; the paper has an ACK for each packet.
    highest_delivery_rate_ = std::max(highest_delivery_rate_, event.sample.delivery_rate);
    const double resolution = highest_delivery_rate_ > 0.0 ? static_cast<double>(event.newly_acked_bytes) *
                                                                 1e9 / highest_delivery_rate_
                                                           : 0.0;
    // At most, not below: a path without any queue has no oscillation either.
    const double threshold = std::max(parameters_.nearly_empty_share * oscillation, resolution);
    if (!has_rtt() || static_cast<double>(queueing_delay()) <= threshold) nearly_empty_time_ = event.now;
    const auto nearly_empty_for = static_cast<std::uint64_t>(event.now - nearly_empty_time_);
    competitive_ = is_on(parameters_.competitive_mode) &&
                   nearly_empty_for > rtts(parameters_.nearly_empty_rtts, event.smoothed_rtt);
    if (!competitive_) {
        inverse_delta_ = 1.0 / parameters_.delta;
    } else if (event.round_start && !recovery_.active()) {
        inverse_delta_ += 1.0;  // as NewReno's window
    }
}

// Step 4, once per window.
void Copa::end_round() {
    const Direction direction = window_ > round_start_window_   ? Direction::up
                                : window_ < round_start_window_ ? Direction::down
                                                                : Direction::none;
    const bool goes_on = direction == direction_ && direction != Direction::none && !slow_start_;
    rounds_in_direction_ = goes_on ? rounds_in_direction_ + 1.0 : 1.0;
    direction_ = direction;
    round_start_window_ = window_;
    // At most the window per round trip, so that it doubles or vanishes in one, as in slow start. The paper
    // has no bound, its authors' implementation this one.
    const double highest = std::max(window_ / inverse_delta_, 1.0);
    const bool doubles = goes_on && rounds_in_direction_ > parameters_.velocity_rounds;
    velocity_ = doubles ? std::min(2.0 * velocity_, highest) : 1.0;
}

// The paper looks at the direction once per window. A velocity that was gained upwards would then empty the
// path in the rest of the window in which the target is crossed; mvfst resets it at once, and so is done
// here.
void Copa::turn_to(Direction direction) {
    if (direction_ == direction || velocity_ == 1.0) return;
    direction_ = direction;
    rounds_in_direction_ = 0.0;
    round_start_window_ = window_;
    velocity_ = 1.0;
}

bool Copa::is_below_target() const {
    const double delay = static_cast<double>(queueing_delay());
    return delay == 0.0 || window_ * delay <= inverse_delta_ * static_cast<double>(standing_rtt_.best());
}

// Section 2.2: AIMD on 1 / delta in competitive mode, with delta at most its default. In default mode
// a single loss changes nothing.
void Copa::congestion_event(Time now, Time sent_time) {
    if (recovery_.covers(sent_time)) return;
    recovery_.begin(now);
    inverse_delta_ = std::max(inverse_delta_ / 2.0, 1.0 / parameters_.delta);
}

void Copa::on_loss(const LossEvent& event) {
    lost_packets_ += event.lost_packets;
    congestion_event(event.now, event.largest_lost_sent_time);
}

// RFC 9002 7.1: an increase of the ECN-CE count is treated as a loss.
void Copa::on_ecn(const EcnEvent& event) {
    if (event.newly_marked_packets > 0) congestion_event(event.now, event.largest_acked_sent_time);
}

// RFC 9002 7.6.2: the smallest window, and slow start.
void Copa::on_persistent_congestion(Time) {
    window_ = kMinimumWindow;
    slow_start_ = true;
    direction_ = Direction::none;
    velocity_ = 1.0;
    recovery_.reset();
    publish();
}

void Copa::publish() {
    const double bytes = window_ * static_cast<double>(max_datagram_bytes_);
    window_bytes_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes + 0.5));
    const Time rtt = has_rtt() ? standing_rtt_.best() : kInitialRtt;
    pacing_rate_ = parameters_.pacing_gain * bytes * 1e9 / static_cast<double>(rtt);
}

void Copa::set_parameters(const ParameterValues& values) {
    parameters_ = with_values(table(), kName, parameters_, values);
    const double inverse_delta = 1.0 / parameters_.delta;
    inverse_delta_ = competitive_ ? std::max(inverse_delta_, inverse_delta) : inverse_delta;
    publish();
}

ParameterValues Copa::parameters() const {
    return to_values(table(), parameters_);
}

ControllerSnapshot Copa::snapshot() const {
    ControllerSnapshot result =
        snapshot_in(slow_start_ ? ControllerMode::slow_start : ControllerMode::congestion_avoidance);
    if (has_rtt()) {
        result.round_trip_estimate = min_rtt_.best();
        result.queue_estimate_packets =
            window_ * static_cast<double>(queueing_delay()) / static_cast<double>(standing_rtt_.best());
    }
    return result;
}

namespace {

ControllerSpecification copa_specification() {
    return {kName, "Copa: the window follows the rate 1 / (delta * queueing delay)",
            "Arun and Balakrishnan, NSDI 2018", specifications(table(), CopaParameters()), construct<Copa>};
}

const Registration registered(copa_specification);

}  // namespace

}  // namespace quicgym
