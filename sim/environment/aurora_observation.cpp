#include "sim/environment/aurora_observation.hpp"

namespace quicgym::environment {

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

}  // namespace quicgym::environment
