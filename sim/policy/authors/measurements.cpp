#include "sim/policy/authors/measurements.hpp"

#include <algorithm>
#include <cmath>

namespace quicgym::policy {

namespace {

// More than any path holds. An idle flow's window may rise with every decision, out of the integers at last.
constexpr double kMostPackets = 1e6;

}  // namespace

// ---- Aurora ----

double AuroraInterval::mean_rtt() const {
    if (rtt_samples == 0.0) return 0.0;
    const double first = std::floor(rtt_samples / 2.0);
    return (first * first_half_rtt + (rtt_samples - first) * second_half_rtt) / rtt_samples;
}

std::array<double, 3> AuroraFeatures::of(const AuroraInterval& interval) {
    double inflation = 0.0;
    if (interval.rtt_samples >= 2.0 && interval.send_seconds > 0.0)
        inflation = (interval.second_half_rtt - interval.first_half_rtt) / interval.send_seconds;

    const double mean = interval.mean_rtt();
    if (mean > 0.0) lowest_mean_rtt_ = lowest_mean_rtt_ == 0.0 ? mean : std::min(lowest_mean_rtt_, mean);
    const double latency_ratio = lowest_mean_rtt_ > 0.0 ? mean / lowest_mean_rtt_ : 1.0;

    const auto per_second = [](double bytes, double seconds) {
        return seconds > 0.0 ? bytes / seconds : 0.0;
    };
    const double sent = per_second(interval.sent_bytes, interval.send_seconds);
    const double received =
        per_second(interval.acked_bytes - interval.unmatched_bytes, interval.receive_seconds);
    const double send_ratio = received > 0.0 && sent < 1000.0 * received ? sent / received : 1.0;
    return {inflation, latency_ratio, send_ratio};
}

double aurora_rate(double rate, double output, double step) {
    const double change = step * output;
    return change >= 0.0 ? rate * (1.0 + change) : rate / (1.0 - change);
}

// ---- Orca ----

std::array<double, 7> OrcaFeatures::of(const OrcaPeriod& period) {
    max_throughput_ = std::max(max_throughput_, period.throughput);
    std::array<double, 7> frame{};
    if (max_throughput_ > 0.0) {
        frame[0] = period.throughput / max_throughput_;
        frame[1] = std::min(period.pacing_rate / max_throughput_, 10.0);
        frame[2] = 5.0 * period.lost_rate / max_throughput_;
    }
    const double bound = 1.25 * period.min_rtt;
    frame[3] = period.rtt_samples / period.window_packets;
    frame[4] = period.seconds;
    frame[5] = period.min_rtt / period.smoothed_rtt;
    frame[6] = bound >= period.smoothed_rtt ? 1.0 : bound / period.smoothed_rtt;
    return frame;
}

std::uint64_t orca_window(std::uint64_t packets, double output) {
    const auto percent = static_cast<std::uint64_t>(100.0 * std::pow(4.0, output));
    return std::clamp<std::uint64_t>(percent * packets / 100, 4, static_cast<std::uint64_t>(kMostPackets));
}

// ---- Astraea ----

std::array<double, 10> AstraeaFeatures::of(const AstraeaPeriod& period) {
    max_throughput_ = std::max(max_throughput_, period.throughput);
    const auto rtt_ratio = [&](double rtt) {
        return period.min_rtt > 0.0 ? std::min(rtt / period.min_rtt, 2.0) : 0.0;
    };
    std::array<double, 10> frame{};
    frame[0] = period.throughput > 0.0 ? period.throughput / max_throughput_ : 0.5;
    frame[1] = period.mean_rtt > 0.0 ? rtt_ratio(period.mean_rtt) : 2.0;
    frame[2] = rtt_ratio(period.smoothed_rtt);
    if (max_throughput_ > 0.0) {
        constexpr double kBits = 8.0 * 1460.0;  // whatever the packets' size is
        if (period.min_rtt > 0.0) {
            frame[3] = std::min(period.window_packets * kBits / period.min_rtt / max_throughput_ / 10.0, 2.0);
        }
        frame[6] = period.lost_rate / max_throughput_;
        frame[8] = std::min(period.pacing_rate / max_throughput_, 2.0);
    }
    frame[4] = max_throughput_ / 1e7;
    frame[5] = period.min_rtt / 0.5;
    frame[7] = period.packets_out / period.window_packets;
    frame[9] = period.retransmitted_packets / period.window_packets;
    return frame;
}

std::uint64_t astraea_window(std::uint64_t packets, double output) {
    constexpr double kStep = 0.025;
    const auto window = static_cast<double>(packets);
    const double next = output >= 0.0 ? std::ceil((1.0 + kStep * output) * window)
                                      : std::floor(window / (1.0 - kStep * output));
    return static_cast<std::uint64_t>(std::clamp(next, 4.0, kMostPackets));
}

// ---- Indigo ----

std::optional<std::array<double, 3>> IndigoFeatures::on_ack(const IndigoAck& ack) {
    min_rtt_ms_ = std::min(min_rtt_ms_, ack.rtt_ms);
    if (step_start_ms_ < 0) step_start_ms_ = ack.now_ms;
    constexpr double kMbps = 0.008;  // of a byte in a millisecond
    const std::array<double, 3> sample = {
        static_cast<double>(ack.rtt_ms - min_rtt_ms_),
        kMbps * ack.delivered_bytes / static_cast<double>(std::max<std::int64_t>(ack.delivered_ms, 1)),
        kMbps * ack.sent_bytes / static_cast<double>(std::max<std::int64_t>(ack.rtt_ms, 1))};
    const double kept = is_empty_ ? 0.0 : std::pow(7.0 / 8.0, ack.packets);
    for (std::size_t i = 0; i < sample.size(); ++i) means_[i] = kept * means_[i] + (1.0 - kept) * sample[i];
    is_empty_ = false;
    constexpr std::int64_t kStepMs = 10;
    if (ack.now_ms - step_start_ms_ <= kStepMs) return std::nullopt;
    step_start_ms_ = ack.now_ms;
    is_empty_ = true;
    return means_;
}

double indigo_window(double packets, std::size_t action) {
    const std::array<double, IndigoFeatures::kActions> next = {packets / 2.0, packets - 10.0, packets,
                                                               packets + 10.0, 2.0 * packets};
    return std::clamp(next[action], 2.0, kMostPackets);
}

}  // namespace quicgym::policy
