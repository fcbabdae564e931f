#include "sim/environment/span_observation.hpp"

#include <algorithm>
#include <cmath>

namespace quicgym::environment {

namespace {

struct Span {
    std::size_t first;  // in intervals before now
    std::size_t last;   // the one after
};

// Calls `each` with the span after the given one, and so on to the history's end.
template <class Each>
void for_each_span(std::size_t history_length, Each each) {
    Span span{0, 1};
    for (std::size_t length = 1; span.first < history_length;) {
        each(span);
        const std::size_t next = span.last;
        span = {next, std::min(next + length, history_length)};
        length *= 2;
    }
}

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

}  // namespace

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

void SpanObserver::write(float* out) const {
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
    for_each_span(history_length, [&](const Span& span) {
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
    for (std::size_t mode = 0; mode < kModes; ++mode) {
        *out++ = static_cast<std::size_t>(sample.mode) == mode ? 1.0F : 0.0F;
    }
}

std::size_t span_count(std::size_t history_length) {
    std::size_t count = 0;
    for_each_span(history_length, [&](const Span&) { ++count; });
    return count;
}

std::vector<Element> span_elements(std::size_t history_length) {
    std::vector<Element> elements;
    for_each_span(history_length, [&](const Span& span) {
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
    for (const char* mode : kModeNames) elements.push_back({mode, 0.0F, 1.0F});
    return elements;
}

}  // namespace quicgym::environment
