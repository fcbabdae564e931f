#include "controllers/cubic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"

namespace quicgym {

namespace {

const ParameterTable<CubicParameters>& table() {
    using P = CubicParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::c>("c", 0.001, 100.0, "segments/s^3", "Aggressiveness of the cubic function",
                         "RFC 9438 4.1.1 and 5")
            .logarithmic(),
        number<P, &P::beta>("beta", 0.1, 0.95, "", "What is left of the window after a congestion event",
                            "RFC 9438 4.6, beta_cubic"),
        number<P, &P::fast_convergence>(
            "fast_convergence", 0.0, 1.0, "",
            "1: a flow whose window shrinks from loss to loss gives bandwidth away; 0: it does not",
            "RFC 9438 4.7"),
        choice<P, &P::slow_start>("slow_start", kSlowStarts, kSlowStartDescription, kSlowStartSource),
        number<P, &P::pacing_gain>("pacing_gain", 1.0, 4.0, "",
                                   "N in pacing rate = N * window / smoothed RTT, in congestion avoidance",
                                   "RFC 9002 7.7"),
        number<P, &P::slow_start_pacing_gain>("slow_start_pacing_gain", 1.0, 4.0, "", "N in slow start",
                                              "RFC 9002 7.7; Linux tcp_pacing_ss_ratio"),
    };
    return rows;
}

// Linux, net/ipv4/tcp_cubic.c, bictcp_update: `cnt` is at most 20 while `last_max_cwnd` is 0. Each
// acknowledged segment then adds at least a twentieth, 5% of the window per round trip, because the flat
// start of the curve would take long to find the capacity that HyStart has left unused.
constexpr double kLinuxLeastGrowthPerSegment = 1.0 / 20.0;

}  // namespace

Cubic::Cubic(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : LossBasedController(max_datagram_bytes),
      segments_per_byte_(1.0 / static_cast<double>(max_datagram_bytes)),
      window_(static_cast<double>(initial_window_bytes(max_datagram_bytes)) * segments_per_byte_) {
    parameters_ = with_values(table(), "cubic", CubicParameters(), values);
    publish();
}

void Cubic::on_ack(const AckEvent& event) {
    pacing_.update_rtt(event.smoothed_rtt);
    recovery_.on_ack(event.largest_acked_sent_time);
    // RFC 9438 5.8: the epoch's clock stands still while the application limits the sender.
    if ((was_app_limited_ || event.app_limited) && epoch_start_ != kNever) {
        epoch_start_ += event.now - last_ack_time_;
    }
    was_app_limited_ = event.app_limited;
    last_ack_time_ = event.now;

    const double acked = static_cast<double>(event.newly_acked_bytes) * segments_per_byte_;
    if (in_slow_start()) {
        slow_start(event, acked);
    } else if (!recovery_.covers(event.largest_acked_sent_time) && !event.app_limited) {
        congestion_avoidance(event, acked);
    }
    publish();
}

// The epoch stands still for a true limit of the application all the same.
void Cubic::on_ack_held(const AckEvent& event, bool time_goes_on) {
    const bool app_limited = was_app_limited_ || event.app_limited;
    const Time epoch_start = epoch_start_;
    LossBasedController::on_ack_held(event, time_goes_on);
    if (!time_goes_on) return;
    was_app_limited_ = event.app_limited;
    if (!app_limited) epoch_start_ = epoch_start;
}

void Cubic::slow_start(const AckEvent& event, double acked) {
    const bool first = std::isinf(slow_start_threshold_);
    if (!recovery_.covers(event.largest_acked_sent_time) && !event.app_limited)
        window_ += acked * slow_start_exit_.growth(parameters_.slow_start, first);
    if (slow_start_exit_.on_ack(parameters_.slow_start, first, event, window_, pacing_rate_))
        slow_start_threshold_ = window_;
}

// RFC 9438 4.2, equation 1, in segments.
double Cubic::cubic_window(double seconds) const {
    const double distance = seconds - k_seconds_;
    return epoch_c_ * distance * distance * distance + w_max_;
}

void Cubic::congestion_avoidance(const AckEvent& event, double acked) {
    if (epoch_start_ == kNever) begin_epoch(event.now);
    const double seconds = to_seconds(event.now - epoch_start_);
    const double acked_windows = acked / window_;
    // RFC 9438 4.3, equation 4: what Reno would have; alpha is 1 once it is back at the old window.
    w_est_ += (w_est_ >= cwnd_prior_ ? 1.0 : epoch_alpha_) * acked_windows;
    const bool has_least_growth =
        !has_maximum_ && is_slow_start(parameters_.slow_start, SlowStart::hystart_linux);
    const double least = has_least_growth ? window_ + kLinuxLeastGrowthPerSegment * acked : window_;
    if (cubic_window(seconds) < w_est_) {
        // Linux's bictcp_update goes there within a round trip, which matters only for a written window.
        if (was_written_) window_ += (std::clamp(w_est_, window_, 1.5 * window_) - window_) * acked_windows;
        else window_ = std::max(window_, w_est_);
    } else {
        // RFC 9438 4.2, 4.4 and 4.5: towards where the cubic will be one round trip from now.
        const double target =
            std::clamp(cubic_window(seconds + to_seconds(event.smoothed_rtt)), window_, 1.5 * window_);
        window_ += (target - window_) * acked_windows;
    }
    window_ = std::max(window_, least);
}

// The only cube root: once per congestion event. RFC 9438 4.2, equation 2.
void Cubic::begin_epoch(Time now) {
    epoch_start_ = now;
    epoch_c_ = parameters_.c;
    epoch_alpha_ = 3.0 * (1.0 - parameters_.beta) / (1.0 + parameters_.beta);
    w_est_ = window_;
    if (w_max_ == 0.0) cwnd_prior_ = window_;  // RFC 9438 4.8 and 4.10: after a timeout or HyStart++
    if (w_max_ > window_) {
        k_seconds_ = std::cbrt((w_max_ - window_) / epoch_c_);
    } else {
        w_max_ = window_;
        k_seconds_ = 0.0;
    }
}

void Cubic::on_loss(const LossEvent& event) {
    const Undo before{window_, cwnd_prior_, slow_start_threshold_, w_max_,      k_seconds_, epoch_start_,
                      w_est_,  epoch_c_,    epoch_alpha_,          has_maximum_};
    if (congestion_event(event.now, event.largest_lost_sent_time)) undo_ = before;
    publish();
}

// RFC 9002 7.1: an increase of the ECN-CE count is treated as a loss.
void Cubic::on_ecn(const EcnEvent& event) {
    if (event.newly_marked_packets == 0) return;
    if (congestion_event(event.now, event.largest_acked_sent_time)) undo_.reset();
}

// RFC 9438 4.9.2. Losses of the same period that came after a mark's reduction have nothing to undo.
void Cubic::on_spurious_loss(Time) {
    const std::optional<Undo> before = std::exchange(undo_, std::nullopt);
    if (!before || window_ > before->window) return;  // grown beyond it since: the current values stay
    window_ = before->window;
    cwnd_prior_ = before->cwnd_prior;
    slow_start_threshold_ = std::max(slow_start_threshold_, before->slow_start_threshold);
    w_max_ = before->w_max;
    k_seconds_ = before->k_seconds;
    epoch_start_ = before->epoch_start;
    w_est_ = before->w_est;
    epoch_c_ = before->epoch_c;
    epoch_alpha_ = before->epoch_alpha;
    has_maximum_ = before->has_maximum;
    publish();
}

// Returns whether the window was reduced.
bool Cubic::congestion_event(Time now, Time sent_time) {
    if (recovery_.covers(sent_time)) return false;
    recovery_.begin(now);
    // RFC 9438 4.7.
    const bool shrinking = window_ < w_max_;
    w_max_ =
        shrinking && is_on(parameters_.fast_convergence) ? window_ * (1.0 + parameters_.beta) * 0.5 : window_;
    has_maximum_ = true;
    // RFC 9438 4.6, with cwnd for flight_size, as a QUIC sender that minds RFC 9002 7.8 may.
    cwnd_prior_ = window_;
    window_ = std::max(window_ * parameters_.beta, static_cast<double>(kMinimumWindowDatagrams));
    slow_start_threshold_ = window_;
    epoch_start_ = kNever;
    publish();
    return true;
}

// RFC 9438 4.8 for the epoch that follows, RFC 9002 7.6.2 for the window.
void Cubic::on_persistent_congestion(Time) {
    undo_.reset();
    window_ = static_cast<double>(kMinimumWindowDatagrams);
    w_max_ = 0.0;
    has_maximum_ = false;
    epoch_start_ = kNever;
    recovery_.reset();
    slow_start_exit_.restart();
    publish();
}

// A new epoch begins from the smaller window; the old one would lead it back within a round.
void Cubic::scale_window(double factor, bool ends_slow_start) {
    undo_.reset();
    const bool slow_start = in_slow_start() && !ends_slow_start;
    window_ = std::max(window_ * factor, static_cast<double>(kMinimumWindowDatagrams));
    if (!slow_start) slow_start_threshold_ = std::min(slow_start_threshold_, window_);
    epoch_start_ = kNever;
    publish();
}

// RFC 9438 4.10: congestion avoidance that no loss began has its plateau at the window itself.
void Cubic::take_over(std::uint64_t window_bytes, bool slow_start) {
    undo_.reset();
    window_ = std::max(static_cast<double>(window_bytes) * segments_per_byte_,
                       static_cast<double>(kMinimumWindowDatagrams));
    if (!slow_start) {
        slow_start_threshold_ = window_;
    } else if (!in_slow_start()) {  // the threshold is of a loss that did not end the other one's
        slow_start_threshold_ = std::numeric_limits<double>::infinity();
    }
    slow_start_exit_.restart();  // what it has seen is the other one's queue
    w_max_ = 0.0;
    has_maximum_ = false;
    epoch_start_ = kNever;
    publish();
}

void Cubic::write_window(std::uint64_t packets) {
    undo_.reset();
    window_ = static_cast<double>(packets);
    was_written_ = true;
    publish();
}

void Cubic::publish() {
    const double bytes = window_ * static_cast<double>(max_datagram_bytes_);
    window_bytes_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes + 0.5));
    pacing_rate_ =
        pacing_.rate(in_slow_start() ? parameters_.slow_start_pacing_gain : parameters_.pacing_gain, bytes);
}

void Cubic::set_parameters(const ParameterValues& values) {
    parameters_ = with_values(table(), "cubic", parameters_, values);
    publish();
}

ParameterValues Cubic::parameters() const {
    return to_values(table(), parameters_);
}

ControllerSnapshot Cubic::snapshot() const {
    return snapshot_in(recovery_.mode(in_slow_start()));
}

ControllerSpecification cubic_specification() {
    return {"cubic", "CUBIC: the window follows a cubic function of the time since the last loss",
            "RFC 9438; HyStart++, RFC 9406; HyStart, Linux tcp_cubic.c",
            specifications(table(), CubicParameters()), construct<Cubic>};
}

namespace {

const Registration registered(cubic_specification, {.place = 20, .baseline_place = 30});

}  // namespace

}  // namespace quicgym
