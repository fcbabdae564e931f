#include "controllers/monitor_intervals.hpp"

#include <algorithm>
#include <cmath>

namespace quicgym {

namespace {

constexpr std::uint64_t kPacketThreshold = 3;  // RFC 9002 6.1.1
// An interval with less than this share of its rate was limited by the application or by flow control.
constexpr double kUsedShare = 0.9;

}  // namespace

double VivaceUtility::of(double rate_mbps, double rtt_gradient, double loss_rate) const {
    return std::pow(rate_mbps, throughput_exponent) - latency_coefficient * rate_mbps * rtt_gradient -
           loss_coefficient * rate_mbps * loss_rate;
}

// ---- monitor interval ----------------------------------------------------------------------

void MonitorInterval::on_rtt(Time sent_time, Time rtt) {
    const double time = to_seconds(sent_time - begin_);
    const double value = to_seconds(rtt);
    samples_ += 1.0;
    sum_time_ += time;
    sum_rtt_ += value;
    sum_time_time_ += time * time;
    sum_time_rtt_ += time * value;
    sum_rtt_rtt_ += value * value;
}

double MonitorInterval::seconds() const {
    return to_seconds(std::max<Time>(end_ - begin_, 1));
}

double MonitorInterval::rtt_gradient() const {
    const double spread = samples_ * sum_time_time_ - sum_time_ * sum_time_;
    // Rounding leaves a little of it when all samples are of one time.
    if (spread <= 1e-9 * samples_ * sum_time_time_) return 0.0;
    return (samples_ * sum_time_rtt_ - sum_time_ * sum_rtt_) / spread;
}

double MonitorInterval::rtt_residual() const {
    if (samples_ == 0.0) return 0.0;
    const double variance = (sum_rtt_rtt_ - sum_rtt_ * sum_rtt_ / samples_) / samples_;
    const double covariance = (sum_time_rtt_ - sum_time_ * sum_rtt_ / samples_) / samples_;
    return std::sqrt(std::max(variance - rtt_gradient() * covariance, 0.0));
}

// ---- sending and measuring -----------------------------------------------------------------

MonitoringController::MonitoringController(std::uint64_t max_datagram_bytes)
    : Controller(max_datagram_bytes),
      rate_(static_cast<double>(initial_window_bytes(max_datagram_bytes)) / to_seconds(kInitialRtt)) {
    pacing_rate_ = rate_;
}

// The gap behind a packet has the rate that was set before the packet. So an interval takes its rate one
// packet early, and each of its packets has a gap of that rate behind it.
void MonitoringController::on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t) {
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
    if (!is_long_enough(interval, now)) return;
    ending_ = true;
    pacing_rate_ = current_ + 1 < planned_ ? intervals_[current_ + 1].rate() : rate_;
}

MonitorInterval* MonitoringController::covering(Time sent_time) {
    for (std::size_t i = 0; i < planned_; ++i) {
        if (intervals_[i].covers(sent_time)) return &intervals_[i];
    }
    return nullptr;
}

void MonitoringController::on_packet_lost(const LostPacket& packet) {
    if (MonitorInterval* interval = covering(packet.sent_time)) interval->on_packet_lost(packet.size_bytes);
}

// RFC 9002 7.1: an increase of the ECN-CE count is treated as losses.
void MonitoringController::on_ecn(const EcnEvent& event) {
    if (MonitorInterval* interval = covering(event.largest_acked_sent_time))
        interval->on_packet_lost(event.newly_marked_packets * max_datagram_bytes_);
}

void MonitoringController::on_ack(const AckEvent& event) {
    if (smoothed_rtt_ == 0 && event.smoothed_rtt > 0)
        rate_ =
            static_cast<double>(initial_window_bytes(max_datagram_bytes_)) / to_seconds(event.smoothed_rtt);
    update_rtt(event);
    if (event.rtt > 0) {
        if (MonitorInterval* interval = covering(event.largest_acked_sent_time))
            interval->on_rtt(event.largest_acked_sent_time, event.rtt);
    }
    if (planned_ == 0 || all_is_known(event)) {
        if (planned_ > 0 && all_used_their_rates()) decide();
        plan(*event.random);
    }
    set_window();
}

void MonitoringController::update_rtt(const AckEvent& event) {
    smoothed_rtt_ = event.smoothed_rtt;
    min_rtt_ = event.min_rtt;
}

// Behind an acknowledged packet, all that was sent kPacketThreshold before is acknowledged or lost.
bool MonitoringController::all_is_known(const AckEvent& event) const {
    return packets_afterwards_ >= kPacketThreshold && event.largest_acked_sent_time >= known_after_;
}

// If an interval was not sent at its rate, the rates have to be measured again.
bool MonitoringController::all_used_their_rates() const {
    return std::all_of(
        intervals_.begin(), intervals_.begin() + static_cast<std::ptrdiff_t>(planned_),
        [](const MonitorInterval& interval) { return interval.sent_rate() >= kUsedShare * interval.rate(); });
}

void MonitoringController::plan(Random& random) {
    if (phase_ != Phase::probing) {
        planned_ = 1;
        intervals_[0] = MonitorInterval(rate_);
    } else {
        planned_ = 2 * probing_pairs();
        for (std::size_t i = 0; i < planned_; i += 2) {
            // In random order, so that what else changes in the meantime favours neither.
            const double step = random.below(2) == 0 ? probing_step() : -probing_step();
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

// Vivace paper, section 4.3, timeout of a monitor interval: half the rate. What is being measured says
// nothing any more.
void MonitoringController::on_persistent_congestion(Time) {
    phase_ = Phase::probing;
    restart(rate_ / 2.0);
}

void MonitoringController::restart(double rate) {
    set_rate(rate);
    pacing_rate_ = rate_;
    forget_intervals();
    set_window();
}

void MonitoringController::forget_intervals() {
    planned_ = current_ = 0;
    ending_ = false;
}

double MonitoringController::rtt_seconds() const {
    return to_seconds(smoothed_rtt_ > 0 ? smoothed_rtt_ : kInitialRtt);
}

// Rate-based: the window only bounds what is in flight when acknowledgements stay away.
void MonitoringController::set_window() {
    const double bytes = window_gain() * rate_ * rtt_seconds();
    window_bytes_ = static_cast<std::uint64_t>(bytes) + initial_window_bytes(max_datagram_bytes_);
}

ControllerSnapshot MonitoringController::snapshot() const {
    return snapshot_in(phase_ == Phase::starting ? ControllerMode::slow_start
                                                 : ControllerMode::congestion_avoidance);
}

}  // namespace quicgym
