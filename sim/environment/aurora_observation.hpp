// What Aurora observes: Jay et al., "A Deep Reinforcement Learning Perspective on Internet Congestion
// Control", ICML 2019, section 3.1.
#pragma once

#include <array>

#include "sim/environment/frame_history.hpp"

namespace quicgym::environment {

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

}  // namespace quicgym::environment
