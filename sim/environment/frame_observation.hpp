// The observations of version 0: a history of frames, one for each decision interval, and the state.
#pragma once

#include <array>
#include <vector>

#include "sim/environment/frame_history.hpp"

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

// Once, after the history.
inline constexpr std::array<BoundedFeature, 2 + kModes> kStateFeatures{{
    {"bdp", 0.0F, 1.0F, "log10(1 + BDP in datagrams) / 6"},
    {"min_rtt", 0.0F, 1.0F, "log10(1 + minimum RTT in ms) / 5"},
    {kModeNames[0], 0.0F, 1.0F, "1 in this mode, else 0"},
    {kModeNames[1], 0.0F, 1.0F, "1 in this mode, else 0"},
    {kModeNames[2], 0.0F, 1.0F, "1 in this mode, else 0"},
    {kModeNames[3], 0.0F, 1.0F, "1 in this mode, else 0"},
    {kModeNames[4], 0.0F, 1.0F, "1 in this mode, else 0"},
    {kModeNames[5], 0.0F, 1.0F, "1 in this mode, else 0"},
    {kModeNames[6], 0.0F, 1.0F, "1 in this mode, else 0"},
}};

class FrameObserver final : public FrameHistory<FrameObserver> {
public:
    static constexpr const auto& kFeatures = kFrameFeatures;

    using FrameHistory::FrameHistory;

    void update(const FlowState& state, double gamma) override;
    void values(const FlowState& before, const FlowState& now, double* out);
    void write(float* out) const override;

private:
    double gamma_ = 0.0;         // packets, after the last interval
    double highest_rate_ = 0.0;  // bytes per second
};

std::vector<Element> frame_elements(std::size_t history_length);

}  // namespace quicgym::environment
