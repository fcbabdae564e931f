// The features of the observation layout `frames`, for networks that read frame by frame.
#pragma once

#include <array>

#include "sim/environment/observation.hpp"

namespace quicgym::environment {

// The latest frame is the last of the history. A value that is not known yet is 0, one above its maximum is
// the maximum. "Highest rate" is the highest delivery rate of an interval so far; BDP is that times the
// minimum RTT.
inline constexpr std::array<BoundedFeature, 8> kFrameFeatures{{
    {"delivery_rate", 0.0F, 1.0F, "bytes acknowledged per second / highest rate"},
    {"send_rate", 0.0F, 4.0F, "bytes sent per second / highest rate"},
    {"pacing_rate", 0.0F, 4.0F, "pacing rate / highest rate"},
    {"rtt", 0.0F, 10.0F, "mean RTT of the interval / minimum RTT"},
    {"loss", 0.0F, 1.0F, "bytes declared lost / (bytes declared lost + acknowledged)"},
    {"in_flight", 0.0F, 10.0F, "bytes in flight / BDP"},
    {"window", 0.0F, 10.0F, "window / BDP"},
    {"queue_over_gamma", 0.0F, 10.0F, "eBCC's diff / gamma; 0 without a finite gamma"},
}};

}  // namespace quicgym::environment
