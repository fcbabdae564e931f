// The observations of version 0: a history of frames, one for each decision interval, and the state.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "sim/environment/observation.hpp"

namespace quicgym::environment {

struct Feature {
    std::string_view name;
    float maximum;  // the minimum is 0
    std::string_view description;
};

// The latest frame is the last of the history. A value that is not known yet is 0, one above its maximum is
// the maximum. "Highest rate" is the highest delivery rate of an interval so far; BDP is that times the
// minimum RTT.
inline constexpr std::array<Feature, 8> kFrameFeatures{{
    {"delivery_rate", 1.0F, "bytes acknowledged per second / highest rate"},
    {"send_rate", 4.0F, "bytes sent per second / highest rate"},
    {"pacing_rate", 4.0F, "pacing rate / highest rate"},
    {"rtt", 10.0F, "mean RTT of the interval / minimum RTT"},
    {"loss", 1.0F, "bytes declared lost / (bytes declared lost + acknowledged)"},
    {"in_flight", 10.0F, "bytes in flight / BDP"},
    {"window", 10.0F, "window / BDP"},
    {"queue_over_gamma", 10.0F, "eBCC's diff / gamma; 0 without a finite gamma"},
}};

// Once, after the history.
inline constexpr std::array<Feature, 2 + kModes> kStateFeatures{{
    {"bdp", 1.0F, "log10(1 + BDP in datagrams) / 6"},
    {"min_rtt", 1.0F, "log10(1 + minimum RTT in ms) / 5"},
    {kModeNames[0], 1.0F, "1 in this mode, else 0"},
    {kModeNames[1], 1.0F, "1 in this mode, else 0"},
    {kModeNames[2], 1.0F, "1 in this mode, else 0"},
    {kModeNames[3], 1.0F, "1 in this mode, else 0"},
    {kModeNames[4], 1.0F, "1 in this mode, else 0"},
    {kModeNames[5], 1.0F, "1 in this mode, else 0"},
    {kModeNames[6], 1.0F, "1 in this mode, else 0"},
}};

class FrameObserver : public Observer {
public:
    FrameObserver(std::size_t history_length, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Observer> clone() const override { return std::make_unique<FrameObserver>(*this); }

    void start(const FlowState& state) override;
    void update(const FlowState& state, double gamma) override;
    void write(float* out) const override;

private:
    void write_frame(const FlowState& state, double gamma, float* out);

    std::uint64_t max_datagram_bytes_;
    FlowState previous_;
    double highest_rate_ = 0.0;   // bytes per second
    std::vector<float> history_;  // frames, oldest first
};

std::vector<Element> frame_elements(std::size_t history_length);

}  // namespace quicgym::environment
