// What Orca observes: Abbasloo et al., "Classic Meets Modern: a Pragmatic Learning-Based Congestion Control
// for the Internet", SIGCOMM 2020, section 4.2.
#pragma once

#include <array>

#include "sim/environment/frame_history.hpp"

namespace quicgym::environment {

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

}  // namespace quicgym::environment
