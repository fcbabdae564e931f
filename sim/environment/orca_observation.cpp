#include "sim/environment/orca_observation.hpp"

namespace quicgym::environment {

namespace {

constexpr double kLossWeight = 5.0;    // zeta
constexpr double kDelayMargin = 1.25;  // beta

}  // namespace

void OrcaObserver::values(const FlowState& before, const FlowState& now, double* out) {
    const double seconds = to_seconds(now.sample.time - before.sample.time);
    const auto delivered = static_cast<double>(now.sample.delivered_bytes - before.sample.delivered_bytes);
    const auto lost = static_cast<double>(now.sample.lost_bytes - before.sample.lost_bytes);
    const double rate = ratio(delivered, seconds);
    highest_rate_ = std::max(highest_rate_, rate);
    const double min_rtt = to_seconds(now.min_rtt);
    const double smoothed_rtt = to_seconds(now.sample.smoothed_rtt);
    const double mean_rtt = mean_rtt_seconds(before, now, to_seconds(now.sample.rtt));
    out[0] = ratio(rate, highest_rate_);
    out[1] = ratio(now.sample.pacing_rate, highest_rate_);
    out[2] = kLossWeight * ratio(ratio(lost, seconds), highest_rate_);
    out[3] = ratio(delivered, static_cast<double>(now.sample.window_bytes));
    out[4] = ratio(seconds, smoothed_rtt);
    out[5] = ratio(min_rtt, smoothed_rtt);
    out[6] = mean_rtt <= kDelayMargin * min_rtt ? 1.0 : ratio(min_rtt, mean_rtt);
}

}  // namespace quicgym::environment
