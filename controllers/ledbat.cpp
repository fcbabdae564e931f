// LEDBAT++, draft-irtf-iccrg-ledbat-plus-plus-01 ("the draft" below), for QUIC. LEDBAT itself is RFC 6817.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "controllers/controller.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

namespace {

struct LedbatParameters {
    double target_ms = 60.0;
    double decrease = 1.0;
    double slow_start_exit = 0.75;
    double slowdown_interval = 9.0;
    double loss_reduction_factor = 0.5;
    double pacing_gain = 1.25;
    double slow_start_pacing_gain = 2.0;
};

const ParameterTable<LedbatParameters>& table() {
    using P = LedbatParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::target_ms>("target_ms", 1.0, 1000.0, "ms",
                                 "Queueing delay that the flow may add: TARGET", "draft 4.2")
            .logarithmic(),
        number<P, &P::decrease>(
            "decrease", 0.0, 10.0, "",
            "Share of the window that is lost in a round, for each TARGET of delay above it",
            "draft 4.3, Constant"),
        number<P, &P::slow_start_exit>("slow_start_exit", 0.0, 10.0, "",
                                       "The first slow start ends above this share of TARGET", "draft 4.1"),
        number<P, &P::slowdown_interval>(
            "slowdown_interval", 0.0, 1000.0, "",
            "The next slowdown follows after so many times the duration of the last one", "draft 4.4")
            .logarithmic(1.0),
        number<P, &P::loss_reduction_factor>("loss_reduction_factor", 0.1, 0.95, "",
                                             "What is left of the window after a congestion event",
                                             "RFC 6817 2.4.2"),
        number<P, &P::pacing_gain>("pacing_gain", 1.0, 4.0, "",
                                   "N in pacing rate = N * window / smoothed RTT, in congestion avoidance",
                                   "RFC 9002 7.7"),
        number<P, &P::slow_start_pacing_gain>("slow_start_pacing_gain", 1.0, 4.0, "", "N in slow start",
                                              "RFC 9002 7.7; Linux tcp_pacing_ss_ratio"),
    };
    return rows;
}

constexpr double kMinimumWindow = static_cast<double>(kMinimumWindowDatagrams);

// RFC 6817 3.4.2 and 3.4.3: what the path has without a queue, and what it has now.
class DelayFilters {
public:
    void add(Time now, Time rtt) {
        if (now >= minute_end_) {
            std::rotate(base_.begin(), base_.end() - 1, base_.end());
            base_[0] = kNever;
            minute_end_ = now + 60 * kSecond;
        }
        base_[0] = std::min(base_[0], rtt);
        current_[next_++ % current_.size()] = rtt;
    }
    bool empty() const { return next_ == 0; }
    Time base() const { return *std::min_element(base_.begin(), base_.end()); }
    Time queueing() const {
        const auto samples = static_cast<std::ptrdiff_t>(std::min(next_, current_.size()));
        return *std::min_element(current_.begin(), current_.begin() + samples) - base();
    }

private:
    static constexpr std::array<Time, 10> unknown() {
        std::array<Time, 10> minima{};
        minima.fill(kNever);
        return minima;
    }

    std::array<Time, 10> base_ = unknown();  // minima of the last minutes, BASE_HISTORY
    std::array<Time, 4> current_{};          // CURRENT_FILTER
    std::size_t next_ = 0;
    Time minute_end_ = 0;
};

class Ledbat final : public Controller {
public:
    Ledbat(const ParameterValues& values, std::uint64_t max_datagram_bytes)
        : Controller(max_datagram_bytes),
          parameters_(with_values(table(), "ledbat++", LedbatParameters(), values)),
          packets_per_byte_(1.0 / static_cast<double>(max_datagram_bytes)) {
        publish();
    }
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Ledbat>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override {
        congestion_event(event.now, event.largest_lost_sent_time);
    }
    // RFC 9002 7.1: an increase of the ECN-CE count is treated as a loss.
    void on_ecn(const EcnEvent& event) override {
        if (event.newly_marked_packets > 0) congestion_event(event.now, event.largest_acked_sent_time);
    }
    // RFC 9002 7.6.2; the threshold stays, so the window comes back by slow start.
    void on_persistent_congestion(Time) override {
        window_ = kMinimumWindow;
        recovery_.reset();
        publish();
    }
    void set_parameters(const ParameterValues& values) override {
        parameters_ = with_values(table(), "ledbat++", parameters_, values);
        publish();
    }
    ParameterValues parameters() const override { return to_values(table(), parameters_); }
    ControllerSnapshot snapshot() const override {
        ControllerSnapshot result = snapshot_in(recovery_.mode(in_slow_start()));
        if (!delay_.empty()) result.round_trip_estimate = delay_.base();
        return result;
    }

private:
    bool in_slow_start() const { return window_ < threshold_; }
    double target() const { return parameters_.target_ms * 1e6; }
    double gain() const;
    void slow_start(const AckEvent& event, double acked);
    void avoid_congestion(double acked, bool may_grow);
    void slow_down(const AckEvent& event);
    void congestion_event(Time now, Time sent_time);
    void publish();

    LedbatParameters parameters_;
    const double packets_per_byte_;

    // Windows in packets of the maximum datagram size.
    double window_ = kMinimumWindow;  // RFC 6817 2.4.2, INIT_CWND
    double threshold_ = std::numeric_limits<double>::infinity();
    DelayFilters delay_;
    Time next_slowdown_ = kNever;   // kNever: the first slow start, or a slowdown
    Time slowdown_start_ = kNever;  // kNever: none under way
    Time frozen_until_ = 0;
    RecoveryPeriod recovery_;
    WindowPacing pacing_;
};

// 4.2: slower than Reno where the base delay is short.
double Ledbat::gain() const {
    const double ratio = std::ceil(2.0 * target() / static_cast<double>(std::max<Time>(delay_.base(), 1)));
    return 1.0 / std::clamp(ratio, 1.0, 16.0);
}

void Ledbat::on_ack(const AckEvent& event) {
    pacing_.update_rtt(event.smoothed_rtt);
    recovery_.on_ack(event.largest_acked_sent_time);
    if (event.rtt > 0) delay_.add(event.now, event.rtt);
    if (!delay_.empty() && !recovery_.covers(event.largest_acked_sent_time)) {
        slow_down(event);
        const double acked = static_cast<double>(event.newly_acked_bytes) * packets_per_byte_;
        if (event.now < frozen_until_) {
            // 4.4: two round trips with the smallest window, in which the queue drains.
        } else if (in_slow_start()) {
            slow_start(event, acked);
        } else {
            avoid_congestion(acked, !event.app_limited);
        }
    }
    publish();
}

// 4.1. After a slowdown it goes up to the threshold, whatever the delay is.
void Ledbat::slow_start(const AckEvent& event, double acked) {
    const bool first = std::isinf(threshold_);
    if (first && static_cast<double>(delay_.queueing()) > parameters_.slow_start_exit * target()) {
        threshold_ = window_;
    } else if (!event.app_limited) {
        window_ += gain() * acked;
    }
}

// 4.3, per round; each ACK has its share of it.
void Ledbat::avoid_congestion(double acked, bool may_grow) {
    const double excess = static_cast<double>(delay_.queueing()) / target() - 1.0;
    double change = gain();
    if (excess > 0.0) change = std::max(change - parameters_.decrease * window_ * excess, -window_ / 2.0);
    if (change > 0.0 && !may_grow) return;  // RFC 9002 7.8
    window_ = std::max(window_ + change * std::min(1.0, acked / window_), kMinimumWindow);
    threshold_ = std::min(threshold_, window_);  // or a window below the threshold would be slow start again
}

// 4.4: the first slowdown comes two round trips after the first slow start. Each lasts until the window is
// back, and the next one follows after nine times as long.
void Ledbat::slow_down(const AckEvent& event) {
    if (std::isinf(threshold_)) return;
    if (slowdown_start_ != kNever) {
        if (event.now < frozen_until_ || in_slow_start()) return;
        const auto lasted = static_cast<double>(event.now - slowdown_start_);
        next_slowdown_ = event.now + static_cast<Time>(parameters_.slowdown_interval * lasted);
        slowdown_start_ = kNever;
    } else if (next_slowdown_ == kNever) {
        next_slowdown_ = event.now + 2 * event.smoothed_rtt;
    } else if (event.now >= next_slowdown_) {
        threshold_ = window_;
        window_ = kMinimumWindow;
        slowdown_start_ = event.now;
        frozen_until_ = event.now + 2 * event.smoothed_rtt;
    }
}

// RFC 6817 2.4.2: as TCP, once in a round trip.
void Ledbat::congestion_event(Time now, Time sent_time) {
    if (recovery_.covers(sent_time)) return;
    recovery_.begin(now);
    window_ = std::max(window_ * parameters_.loss_reduction_factor, kMinimumWindow);
    threshold_ = window_;
    publish();
}

void Ledbat::publish() {
    const double bytes = window_ * static_cast<double>(max_datagram_bytes_);
    window_bytes_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes + 0.5));
    pacing_rate_ =
        pacing_.rate(in_slow_start() ? parameters_.slow_start_pacing_gain : parameters_.pacing_gain, bytes);
}

ControllerSpecification ledbat_specification() {
    return {"ledbat++",
            "LEDBAT++: background traffic that keeps its queueing delay below a target and yields",
            "draft-irtf-iccrg-ledbat-plus-plus-01; RFC 6817", specifications(table(), LedbatParameters()),
            construct<Ledbat>};
}

const Registration registered(ledbat_specification);

}  // namespace

}  // namespace quicgym
