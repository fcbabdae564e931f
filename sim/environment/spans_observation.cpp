// The observation layout `spans`: sums over spans that double with their age, in logarithms.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/environment/doubling_spans.hpp"
#include "sim/environment/observation.hpp"

namespace quicgym::environment {

namespace {

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

class SpanObserver final : public Observer {
public:
    SpanObserver(std::size_t history_length, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Observer> clone() const override { return std::make_unique<SpanObserver>(*this); }

    void start(const FlowState& state) override;
    void update(const FlowState& state, double gamma) override;
    float* write(float* out) const override;
    static std::vector<Element> elements(std::size_t history_length);

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

double log_ratio(double numerator, double denominator) {
    return numerator > 0.0 && denominator > 0.0 ? std::log10(numerator / denominator) : 0.0;
}

// Of a share, in which 0.1% and 1% differ as much as 10% and 100% do.
double log_share(double part, double whole) {
    return whole > 0.0 ? std::log10(1.0 + 1000.0 * std::min(1.0, part / whole)) : 0.0;
}

template <std::size_t Size>
float* write_bounded(const double (&values)[Size], const std::array<BoundedFeature, Size>& features,
                     float* out) {
    for (std::size_t i = 0; i < Size; ++i) *out++ = bounded(values[i], features[i]);
    return out;
}

SpanObserver::SpanObserver(std::size_t history_length, std::uint64_t max_datagram_bytes)
    : datagram_(static_cast<double>(max_datagram_bytes)), ring_(history_length + 1) {}

void SpanObserver::start(const FlowState& state) {
    previous_ = state;
}

void SpanObserver::update(const FlowState& state, double /*gamma*/) {
    const TraceSample& now = state.sample;
    const TraceSample& before = previous_.sample;
    Sums sums = at(intervals_);
    const auto add = [](double& sum, std::uint64_t later, std::uint64_t earlier) {
        const auto difference = static_cast<double>(later - earlier);
        sum += difference;
        return difference;
    };
    const double seconds = to_seconds(now.time - before.time);
    sums.seconds += seconds;
    const double delivered = add(sums.delivered_bytes, now.delivered_bytes, before.delivered_bytes);
    add(sums.sent_bytes, now.sent_bytes, before.sent_bytes);
    add(sums.lost_bytes, now.lost_bytes, before.lost_bytes);
    add(sums.marks, state.ecn_marks, previous_.ecn_marks);
    add(sums.rtt_samples, state.rtt_samples, previous_.rtt_samples);
    sums.rtt_seconds += state.rtt_sum_seconds - previous_.rtt_sum_seconds;
    sums.rtt = mean_rtt_seconds(previous_, state, sums.rtt);
    sums.log_window += std::log10(std::max(datagram_, static_cast<double>(now.window_bytes)));
    sums.log_pacing_rate += std::log10(std::max(1.0, now.pacing_rate));
    sums.log_in_flight += std::log10(static_cast<double>(now.in_flight_bytes) + datagram_);
    sums.delivery_rate = seconds > 0.0 ? delivered / seconds : 0.0;
    highest_rate_ = std::max(highest_rate_, sums.delivery_rate);
    ++intervals_;
    ring_[intervals_ % ring_.size()] = sums;
    previous_ = state;
}

float* SpanObserver::write(float* out) const {
    const std::size_t history_length = ring_.size() - 1;
    const std::size_t known = std::min(intervals_, history_length);
    const Sums& now = at(intervals_);
    const double min_rtt = to_seconds(previous_.min_rtt);
    // A datagram in the last interval, where nothing has been delivered at all.
    const double interval = known > 0 ? now.seconds - at(intervals_ - 1).seconds : 0.0;
    double reference_rate = interval > 0.0 ? datagram_ / interval : 0.0;
    for (std::size_t age = 0; age < known; ++age) {
        reference_rate = std::max(reference_rate, at(intervals_ - age).delivery_rate);
    }
    const double bdp = std::max(datagram_, reference_rate * min_rtt);
    for_each_doubling_span(history_length, [&](const DoublingSpan& span) {
        const std::size_t last = std::min(span.last, known);
        if (last <= span.first) {
            std::fill_n(out, kSpanFeatures.size(), 0.0F);
            out += kSpanFeatures.size();
            return;
        }
        const Sums& from = at(intervals_ - last);
        const Sums& to = at(intervals_ - span.first);
        const auto count = static_cast<double>(last - span.first);
        const double delivered = to.delivered_bytes - from.delivered_bytes;
        const double lost = to.lost_bytes - from.lost_bytes;
        const double samples = to.rtt_samples - from.rtt_samples;
        const double rtt = samples > 0.0 ? (to.rtt_seconds - from.rtt_seconds) / samples : to.rtt;
        const double seconds = to.seconds - from.seconds;
        const double values[kSpanFeatures.size()] = {
            count / static_cast<double>(span.last - span.first),
            log_ratio(delivered + datagram_, reference_rate * seconds + datagram_),
            log_ratio(to.sent_bytes - from.sent_bytes + datagram_, delivered + datagram_),
            log_ratio(rtt, min_rtt),
            log_share(lost, lost + delivered),
            log_share(to.marks - from.marks, delivered / datagram_),
            (to.log_window - from.log_window) / count - std::log10(bdp),
            (to.log_pacing_rate - from.log_pacing_rate) / count - std::log10(std::max(1.0, reference_rate)),
            (to.log_in_flight - from.log_in_flight) / count - std::log10(bdp),
        };
        out = write_bounded(values, kSpanFeatures, out);
    });
    const TraceSample& sample = previous_.sample;
    // eBCC equations 3 to 5, which hold for any window.
    const double queue_packets =
        now.rtt > 0.0 ? static_cast<double>(sample.window_bytes) * (1.0 - min_rtt / now.rtt) / datagram_
                      : 0.0;
    const double values[kSpanStateFeatures.size()] = {
        std::log10(bdp / datagram_),
        min_rtt > 0.0 ? std::log10(min_rtt * 1e3) : 0.0,
        log_ratio(highest_rate_, reference_rate),
        log_ratio(interval, to_seconds(sample.smoothed_rtt)),
        std::log10(1.0 + std::max(0.0, to_seconds(sample.time - previous_.start))),
        std::log10(1.0 + std::max(0.0, queue_packets)),
    };
    out = write_bounded(values, kSpanStateFeatures, out);
    return write_modes(sample.mode, out);
}

std::vector<Element> SpanObserver::elements(std::size_t history_length) {
    std::vector<Element> elements;
    for_each_doubling_span(history_length, [&](const DoublingSpan& span) {
        const std::string age = span.last - span.first == 1 ? "[" + std::to_string(span.first) + "]"
                                                            : "[" + std::to_string(span.first) + ":" +
                                                                  std::to_string(span.last) + "]";
        for (const BoundedFeature& feature : kSpanFeatures) {
            elements.push_back({std::string(feature.name) + age, feature.minimum, feature.maximum});
        }
    });
    for (const BoundedFeature& feature : kSpanStateFeatures) {
        elements.push_back({std::string(feature.name), feature.minimum, feature.maximum});
    }
    add_mode_elements(elements);
    return elements;
}

const RegisteredObservationLayout<SpanObserver> kRegistered("spans");

}  // namespace

}  // namespace quicgym::environment
