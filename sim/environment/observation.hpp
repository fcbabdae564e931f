// What an agent sees: features that a real sender can measure, finite and bounded.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/simulation.hpp"

namespace quicgym::environment {

struct Feature {
    std::string_view name;
    float maximum;  // the minimum is 0
    std::string_view description;
};

// One frame for each decision interval; the latest is the last of the history. A value that is not known
// yet is 0, one above its maximum is the maximum. "Highest rate" is the highest delivery rate of an
// interval so far; BDP is that times the minimum RTT.
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
inline constexpr std::array<Feature, 9> kStateFeatures{{
    {"bdp", 1.0F, "log10(1 + BDP in datagrams) / 6"},
    {"min_rtt", 1.0F, "log10(1 + minimum RTT in ms) / 5"},
    {"slow_start", 1.0F, "1 in this mode, else 0"},
    {"congestion_avoidance", 1.0F, "1 in this mode, else 0"},
    {"recovery", 1.0F, "1 in this mode, else 0"},
    {"startup", 1.0F, "1 in this mode, else 0"},
    {"drain", 1.0F, "1 in this mode, else 0"},
    {"probe_bw", 1.0F, "1 in this mode, else 0"},
    {"probe_rtt", 1.0F, "1 in this mode, else 0"},
}};

inline constexpr std::size_t observation_size(std::size_t history_length) {
    return history_length * kFrameFeatures.size() + kStateFeatures.size();
}

// Follows one flow through an episode.
class Observer {
public:
    Observer(std::size_t history_length, std::uint64_t max_datagram_bytes);

    // The state when the episode begins.
    void start(const FlowState& state);
    // The state after a decision interval. `gamma` is infinite or NaN where the controller has none.
    void update(const FlowState& state, double gamma);
    // observation_size(history_length) numbers.
    void write(float* out) const;

private:
    void write_frame(const FlowState& state, double gamma, float* out);

    std::uint64_t max_datagram_bytes_;
    FlowState previous_;
    double highest_rate_ = 0.0;   // bytes per second
    std::vector<float> history_;  // frames, oldest first
};

}  // namespace quicgym::environment
