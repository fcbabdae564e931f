// The observations of version 1: sums over spans that double with their age, in logarithms.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/environment/observation.hpp"

namespace quicgym::environment {

// A decade is 1. The bounds are those of what a simulation can do, with room: nothing reaches them.
inline constexpr float kDecades = 9.0F;

// For each span. The latest is the last decision interval; then the one before, the two before that, the four
// before those and so on, back to the history's length. What the episode does not have yet of a span is left
// out; a span without anything is 0 throughout.
//
// "Reference rate" is the highest delivery rate of an interval of the history, and at least a datagram in it;
// BDP is the reference rate times the minimum RTT, and at least a datagram.
inline constexpr std::array<BoundedFeature, 9> kSpanFeatures{{
    {"known", 0.0F, 1.0F, "share of the span's intervals that there have been"},
    {"delivery_rate", -kDecades, kDecades,
     "log10 (bytes acknowledged + a datagram) / (reference rate * length + a datagram)"},
    {"send_rate", -kDecades, kDecades, "log10 (bytes sent + a datagram) / (bytes acknowledged + a datagram)"},
    {"rtt", 0.0F, kDecades,
     "log10 mean RTT / minimum RTT; without a sample that of the span's last interval"},
    {"loss", 0.0F, 3.1F, "log10 (1 + 1000 * bytes declared lost / (declared lost + acknowledged))"},
    {"marks", 0.0F, 3.1F, "log10 (1 + 1000 * packets marked ECN-CE / datagrams acknowledged, at most 1)"},
    {"window", -kDecades, kDecades, "mean over the span's intervals of log10 window / BDP at their ends"},
    {"pacing_rate", -kDecades, kDecades, "the same of pacing rate / reference rate"},
    {"in_flight", -kDecades, kDecades, "the same of (bytes in flight + a datagram) / BDP"},
}};

// Once, after the spans.
inline constexpr std::array<BoundedFeature, 6> kSpanStateFeatures{{
    {"bdp", 0.0F, kDecades, "log10 BDP in datagrams"},
    {"min_rtt", -kDecades, kDecades, "log10 minimum RTT in ms; 0 before the first sample"},
    {"highest_rate", 0.0F, kDecades, "log10 highest delivery rate of an interval so far / reference rate"},
    {"interval", -kDecades, kDecades, "log10 time since the last decision / smoothed RTT"},
    {"age", 0.0F, kDecades, "log10 (1 + seconds since the flow's start)"},
    {"queue", 0.0F, kDecades, "log10 (1 + packets of the flow in the queue: eBCC's diff)"},
}};

class SpanObserver : public Observer {
public:
    SpanObserver(std::size_t history_length, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Observer> clone() const override { return std::make_unique<SpanObserver>(*this); }

    void start(const FlowState& state) override;
    void update(const FlowState& state, double gamma) override;
    void write(float* out) const override;

private:
    // Sums since the episode's beginning, at the end of an interval.
    struct Sums {
        double seconds = 0.0;
        double delivered_bytes = 0.0;
        double sent_bytes = 0.0;
        double lost_bytes = 0.0;
        double marks = 0.0;
        double rtt_samples = 0.0;
        double rtt_seconds = 0.0;
        // Of logarithms, one for each interval; of bytes, and of bytes per second.
        double log_window = 0.0;
        double log_pacing_rate = 0.0;
        double log_in_flight = 0.0;
        // Of this interval alone.
        double rtt = 0.0;            // seconds; without a sample the one before
        double delivery_rate = 0.0;  // bytes per second
    };

    const Sums& at(std::size_t intervals) const { return ring_[intervals % ring_.size()]; }

    double datagram_;
    std::vector<Sums> ring_;     // one more than the history's length
    std::size_t intervals_ = 0;  // so far
    FlowState previous_;
    double highest_rate_ = 0.0;  // bytes per second
};

std::size_t span_count(std::size_t history_length);
std::vector<Element> span_elements(std::size_t history_length);

}  // namespace quicgym::environment
