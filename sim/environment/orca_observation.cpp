// The observation layout `orca`, what Orca observes: Abbasloo et al., "Classic Meets Modern: a Pragmatic
// Learning-Based Congestion Control for the Internet", SIGCOMM 2020, section 4.2.
#include <array>

#include "sim/environment/frame_history.hpp"

namespace quicgym::environment {

namespace {

constexpr double kLossWeight = 5.0;    // zeta
constexpr double kDelayMargin = 1.25;  // beta

class OrcaObserver final : public FrameHistory<OrcaObserver> {
public:
    // Of a monitoring period, which is a decision interval here.
    static constexpr std::array<BoundedFeature, 7> kFeatures{{
        {"throughput", 0.0F, 1.0F, "delivery rate / highest one so far"},
        {"pacing_rate", 0.0F, 100.0F, "pacing rate / highest delivery rate"},
        {"loss", 0.0F, 10.0F, "5 * rate of bytes declared lost / highest delivery rate"},
        {"acks", 0.0F, 100.0F, "datagrams acknowledged / window in datagrams"},
        {"interval", 0.0F, 100.0F, "length of the interval / smoothed RTT"},
        {"delay", 0.0F, 1.0F, "minimum RTT / smoothed RTT"},
        {"delay_metric", 0.0F, 1.0F, "1 up to 1.25 * minimum RTT, then minimum RTT / mean RTT"},
    }};

    using FrameHistory::FrameHistory;

    void values(const FlowState& before, const FlowState& now, double* out);

private:
    double highest_rate_ = 0.0;  // bytes per second
};

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

const RegisteredObservationLayout<OrcaObserver> kRegistered("orca");

}  // namespace

}  // namespace quicgym::environment
