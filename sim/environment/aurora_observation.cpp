// The observation layout `aurora`, what Aurora observes: Jay et al., "A Deep Reinforcement Learning
// Perspective on Internet Congestion Control", ICML 2019, section 3.1.
#include <array>

#include "sim/environment/frame_history.hpp"

namespace quicgym::environment {

namespace {

class AuroraObserver final : public FrameHistory<AuroraObserver> {
public:
    // Of a monitor interval, which is a decision interval here.
    static constexpr std::array<BoundedFeature, 3> kFeatures{{
        {"latency_gradient", -10.0F, 10.0F, "change of the mean RTT since the interval before, in s per s"},
        {"latency_ratio", 1.0F, 100.0F, "mean RTT / lowest mean RTT of an interval so far"},
        {"send_ratio", 1.0F, 100.0F, "datagrams sent / datagrams acknowledged"},
    }};

    using FrameHistory::FrameHistory;

    void values(const FlowState& before, const FlowState& now, double* out);

private:
    double mean_rtt_ = 0.0;  // seconds, of the last interval with a sample
    double lowest_mean_rtt_ = 0.0;
};

void AuroraObserver::values(const FlowState& before, const FlowState& now, double* out) {
    const double seconds = to_seconds(now.sample.time - before.sample.time);
    const double mean_rtt = mean_rtt_seconds(before, now, mean_rtt_);
    if (lowest_mean_rtt_ == 0.0 || mean_rtt < lowest_mean_rtt_) lowest_mean_rtt_ = mean_rtt;
    const double sent = static_cast<double>(now.sample.sent_bytes - before.sample.sent_bytes);
    const double acked = static_cast<double>(now.sample.delivered_bytes - before.sample.delivered_bytes);
    out[0] = mean_rtt_ > 0.0 && seconds > 0.0 ? (mean_rtt - mean_rtt_) / seconds : 0.0;
    out[1] = lowest_mean_rtt_ > 0.0 ? mean_rtt / lowest_mean_rtt_ : 1.0;
    // Without an acknowledgement as if there had been one: Aurora's intervals have no such case.
    out[2] = sent > 0.0 ? sent / std::max(acked, max_datagram_bytes_) : 1.0;
    mean_rtt_ = mean_rtt;
}

const RegisteredObservationLayout<AuroraObserver> kRegistered("aurora");

}  // namespace

}  // namespace quicgym::environment
