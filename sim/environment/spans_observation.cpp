// The observation layouts `spans`, `recent` and `cycle`: sums over spans that double with their age, in
// logarithms. Layout `spans` measures them against the connection's lowest RTT, so that a path that has
// become longer is taken for a queue for ever; `recent` and `cycle` use the lowest RTT of late, so that it is
// for some seconds only. `cycle` is `recent` and where BBR's gain cycle stands.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
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
// "Reference rate" is the highest delivery rate of an interval, and at least a datagram in it; BDP is the
// reference rate times the base RTT, and at least a datagram. In `spans` the intervals are those of the
// history, and the base RTT is the connection's minimum. In `recent` they are those of the last kRecent, but
// kRecentIntervals at least, and the base RTT is the lowest mean of one of them.
inline constexpr std::array<BoundedFeature, 9> kSpanFeatures{{
    {"known", 0.0F, 1.0F, "share of the span's intervals that there have been"},
    {"delivery_rate", -kDecades, kDecades,
     "log10 (bytes acknowledged + a datagram) / (reference rate * length + a datagram)"},
    {"send_rate", -kDecades, kDecades, "log10 (bytes sent + a datagram) / (bytes acknowledged + a datagram)"},
    {"rtt", -kDecades, kDecades,
     "log10 mean RTT / base RTT; without a sample that of the span's last interval"},
    {"loss", 0.0F, 3.1F, "log10 (1 + 1000 * bytes declared lost / (declared lost + acknowledged))"},
    {"marks", 0.0F, 3.1F, "log10 (1 + 1000 * packets marked ECN-CE / datagrams acknowledged, at most 1)"},
    {"window", -kDecades, kDecades, "mean over the span's intervals of log10 window / BDP at their ends"},
    {"pacing_rate", -kDecades, kDecades, "the same of pacing rate / reference rate"},
    {"in_flight", -kDecades, kDecades, "the same of (bytes in flight + a datagram) / BDP"},
}};

constexpr Time kRecent = 10 * kSecond;
constexpr std::size_t kRecentIntervals = 10;
// A value this near to the lowest or highest so far counts as reaching it again.
constexpr double kNear = 0.05;

// Once, after the spans of `spans`.
inline constexpr std::array<BoundedFeature, 6> kSpanStateFeatures{{
    {"bdp", 0.0F, kDecades, "log10 BDP in datagrams"},
    {"min_rtt", -kDecades, kDecades, "log10 minimum RTT in ms; 0 before the first sample"},
    {"highest_rate", 0.0F, kDecades, "log10 highest delivery rate of an interval so far / reference rate"},
    {"interval", -kDecades, kDecades, "log10 time since the last decision / smoothed RTT"},
    {"age", 0.0F, kDecades, "log10 (1 + seconds since the flow's start)"},
    {"queue", 0.0F, kDecades, "log10 (1 + packets of the flow in the queue: eBCC's diff)"},
}};

// Once, after the spans of `recent`. Ages are in base RTTs.
inline constexpr std::array<BoundedFeature, 10> kRecentStateFeatures{{
    {"bdp", 0.0F, kDecades, "log10 BDP in datagrams"},
    {"base_rtt", -kDecades, kDecades, "log10 base RTT in ms; 0 before the first sample"},
    {"base_rtt_age", 0.0F, kDecades, "log10 (1 + age of the interval with the base RTT)"},
    {"min_rtt", 0.0F, kDecades, "log10 base RTT / the connection's minimum RTT"},
    {"min_rtt_age", 0.0F, kDecades, "log10 (1 + age of the last interval that was near the lowest so far)"},
    {"highest_rate", 0.0F, kDecades, "log10 highest delivery rate of an interval so far / reference rate"},
    {"highest_rate_age", 0.0F, kDecades, "log10 (1 + age of the last interval that was near that)"},
    {"interval", -kDecades, kDecades, "log10 time since the last decision / smoothed RTT"},
    {"age", 0.0F, kDecades, "log10 (1 + age of the flow)"},
    {"queue", 0.0F, kDecades, "log10 (1 + packets of the flow in the queue: eBCC's diff)"},
}};

// Once, after the state of `recent`, in layout `cycle`. Without them an agent that sets the gains cannot tell
// which of them is about to act.
inline constexpr std::array<BoundedFeature, 3> kCycleFeatures{{
    {"cycle_gain", -kDecades, kDecades, "log2 of the pacing gain of the phase; 0 outside ProbeBW"},
    {"cycle_passed", 0.0F, 1.0F, "share of the gain cycle's phases that are over"},
    {"phase_left", 0.0F, 1.0F, "least time that is left of the phase / base RTT"},
}};

enum class SpanLayout { spans, recent, cycle };

template <SpanLayout Layout>
class SpanObserver final : public Observer {
public:
    SpanObserver(std::size_t history_length, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Observer> clone() const override { return std::make_unique<SpanObserver>(*this); }

    void start(const FlowState& state) override;
    void update(const FlowState& state) override;
    float* write(float* out) const override;
    static std::vector<Element> elements(std::size_t history_length);

private:
    static constexpr bool kIsRecent = Layout != SpanLayout::spans;

    // Sums since the episode's beginning, at the end of an interval.
    struct Sums {
        double seconds = 0.0;
        double delivered_bytes = 0.0;
        double sent_bytes = 0.0;
        double lost_bytes = 0.0;
        double marks = 0.0;
        double rtt_samples = 0.0;
        double rtt_seconds = 0.0;
        // Sums over the intervals of the logarithms of bytes, and of bytes per second.
        double log_window = 0.0;
        double log_pacing_rate = 0.0;
        double log_in_flight = 0.0;
        // These are about the last interval alone.
        double rtt = 0.0;            // seconds; without a sample the one before
        double delivery_rate = 0.0;  // bytes per second
    };

    // The estimate of the path.
    struct Path {
        double reference_rate;  // bytes per second
        double base_rtt;        // seconds
        double base_rtt_at;     // in seconds since the episode's beginning
    };

    Path path() const;
    float* write_state(const Path& path, double bdp, float* out) const;
    float* write_cycle(const Path& path, float* out) const;

    const Sums& at(std::size_t intervals) const { return ring_[intervals % ring_.size()]; }

    double datagram_;
    std::vector<Sums> ring_;     // one more than the history's length
    std::size_t intervals_ = 0;  // so far
    FlowState previous_;
    double highest_rate_ = 0.0;                                    // bytes per second
    double highest_rate_at_ = 0.0;                                 // seconds, like the next but one
    double lowest_rtt_ = std::numeric_limits<double>::infinity();  // seconds
    double lowest_rtt_at_ = 0.0;
};

double log_ratio(double numerator, double denominator) {
    return numerator > 0.0 && denominator > 0.0 ? std::log10(numerator / denominator) : 0.0;
}

// The logarithm of a share, in which 0.1% and 1% differ about as much as 10% and 100% do.
double log_share(double part, double whole) {
    return whole > 0.0 ? std::log10(1.0 + 1000.0 * std::min(1.0, part / whole)) : 0.0;
}

template <std::size_t Size>
float* write_bounded(const double (&values)[Size], const std::array<BoundedFeature, Size>& features,
                     float* out) {
    for (std::size_t i = 0; i < Size; ++i) *out++ = bounded(values[i], features[i]);
    return out;
}

template <SpanLayout Layout>
SpanObserver<Layout>::SpanObserver(std::size_t history_length, std::uint64_t max_datagram_bytes)
    : datagram_(static_cast<double>(max_datagram_bytes)), ring_(history_length + 1) {}

template <SpanLayout Layout>
void SpanObserver<Layout>::start(const FlowState& state) {
    previous_ = state;
}

template <SpanLayout Layout>
void SpanObserver<Layout>::update(const FlowState& state) {
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
    if (sums.delivery_rate >= (1.0 - kNear) * highest_rate_) highest_rate_at_ = sums.seconds;
    highest_rate_ = std::max(highest_rate_, sums.delivery_rate);
    if (sums.rtt > 0.0 && sums.rtt <= (1.0 + kNear) * lowest_rtt_) {
        lowest_rtt_at_ = sums.seconds;
        lowest_rtt_ = std::min(lowest_rtt_, sums.rtt);
    }
    ++intervals_;
    ring_[intervals_ % ring_.size()] = sums;
    previous_ = state;
}

template <SpanLayout Layout>
auto SpanObserver<Layout>::path() const -> Path {
    const std::size_t known = std::min(intervals_, ring_.size() - 1);
    const Sums& now = at(intervals_);
    // A datagram in the last interval, where nothing has been delivered at all.
    const double interval = known > 0 ? now.seconds - at(intervals_ - 1).seconds : 0.0;
    const double min_rtt = to_seconds(previous_.min_rtt);
    Path path{interval > 0.0 ? datagram_ / interval : 0.0, min_rtt, now.seconds};
    double lowest_rtt = std::numeric_limits<double>::infinity();
    for (std::size_t age = 0; age < known; ++age) {
        const Sums& one = at(intervals_ - age);
        if (kIsRecent && age >= kRecentIntervals && now.seconds - one.seconds > to_seconds(kRecent)) break;
        path.reference_rate = std::max(path.reference_rate, one.delivery_rate);
        if (!kIsRecent || one.rtt <= 0.0 || one.rtt >= lowest_rtt) continue;
        lowest_rtt = one.rtt;
        path.base_rtt_at = one.seconds;
    }
    if (lowest_rtt < std::numeric_limits<double>::infinity()) path.base_rtt = lowest_rtt;
    return path;
}

template <SpanLayout Layout>
float* SpanObserver<Layout>::write(float* out) const {
    const std::size_t history_length = ring_.size() - 1;
    const std::size_t known = std::min(intervals_, history_length);
    const Path path = this->path();
    const double bdp = std::max(datagram_, path.reference_rate * path.base_rtt);
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
            log_ratio(delivered + datagram_, path.reference_rate * seconds + datagram_),
            log_ratio(to.sent_bytes - from.sent_bytes + datagram_, delivered + datagram_),
            log_ratio(rtt, path.base_rtt),
            log_share(lost, lost + delivered),
            log_share(to.marks - from.marks, delivered / datagram_),
            (to.log_window - from.log_window) / count - std::log10(bdp),
            (to.log_pacing_rate - from.log_pacing_rate) / count -
                std::log10(std::max(1.0, path.reference_rate)),
            (to.log_in_flight - from.log_in_flight) / count - std::log10(bdp),
        };
        out = write_bounded(values, kSpanFeatures, out);
    });
    out = write_state(path, bdp, out);
    return write_modes(previous_.sample.mode, out);
}

template <SpanLayout Layout>
float* SpanObserver<Layout>::write_state(const Path& path, double bdp, float* out) const {
    const TraceSample& sample = previous_.sample;
    const Sums& now = at(intervals_);
    const double interval = intervals_ > 0 ? now.seconds - at(intervals_ - 1).seconds : 0.0;
    const double age = std::max(0.0, to_seconds(sample.time - previous_.start));
    // eBCC equations 3 to 5, which hold for any window.
    const double queue_packets =
        now.rtt > 0.0 ? static_cast<double>(sample.window_bytes) * (1.0 - path.base_rtt / now.rtt) / datagram_
                      : 0.0;
    const double log_bdp = std::log10(bdp / datagram_);
    const double log_base_rtt = path.base_rtt > 0.0 ? std::log10(path.base_rtt * 1e3) : 0.0;
    const double log_highest_rate = log_ratio(highest_rate_, path.reference_rate);
    const double log_interval = log_ratio(interval, to_seconds(sample.smoothed_rtt));
    const double log_queue = std::log10(1.0 + std::max(0.0, queue_packets));
    if constexpr (kIsRecent) {
        const auto log_age = [&](double seconds) { return std::log10(1.0 + ratio(seconds, path.base_rtt)); };
        const double values[kRecentStateFeatures.size()] = {
            log_bdp,
            log_base_rtt,
            log_age(now.seconds - path.base_rtt_at),
            log_ratio(path.base_rtt, to_seconds(previous_.min_rtt)),
            log_age(now.seconds - lowest_rtt_at_),
            log_highest_rate,
            log_age(now.seconds - highest_rate_at_),
            log_interval,
            log_age(age),
            log_queue,
        };
        out = write_bounded(values, kRecentStateFeatures, out);
        return Layout == SpanLayout::cycle ? write_cycle(path, out) : out;
    } else {
        const double values[kSpanStateFeatures.size()] = {
            log_bdp, log_base_rtt, log_highest_rate, log_interval, std::log10(1.0 + age), log_queue,
        };
        return write_bounded(values, kSpanStateFeatures, out);
    }
}

template <SpanLayout Layout>
float* SpanObserver<Layout>::write_cycle(const Path& path, float* out) const {
    const double left_seconds =
        to_seconds(std::max<Time>(0, previous_.cycle_phase_end - previous_.sample.time));
    const double values[kCycleFeatures.size()] = {
        std::log2(previous_.cycle_gain),
        previous_.cycle_passed,
        ratio(left_seconds, path.base_rtt),
    };
    return write_bounded(values, kCycleFeatures, out);
}

template <SpanLayout Layout>
std::vector<Element> SpanObserver<Layout>::elements(std::size_t history_length) {
    std::vector<Element> elements;
    for_each_doubling_span(history_length, [&](const DoublingSpan& span) {
        const std::string age = span.last - span.first == 1 ? "[" + std::to_string(span.first) + "]"
                                                            : "[" + std::to_string(span.first) + ":" +
                                                                  std::to_string(span.last) + "]";
        for (const BoundedFeature& feature : kSpanFeatures) {
            elements.push_back({std::string(feature.name) + age, feature.minimum, feature.maximum});
        }
    });
    const auto add = [&](const auto& features) {
        for (const BoundedFeature& feature : features) {
            elements.push_back({std::string(feature.name), feature.minimum, feature.maximum});
        }
    };
    if constexpr (kIsRecent) {
        add(kRecentStateFeatures);
    } else {
        add(kSpanStateFeatures);
    }
    if constexpr (Layout == SpanLayout::cycle) add(kCycleFeatures);
    add_mode_elements(elements);
    return elements;
}

const RegisteredObservationLayout<SpanObserver<SpanLayout::spans>> kRegisteredSpans("spans");
const RegisteredObservationLayout<SpanObserver<SpanLayout::recent>> kRegisteredRecent("recent");
const RegisteredObservationLayout<SpanObserver<SpanLayout::cycle>> kRegisteredCycle("cycle");

}  // namespace

}  // namespace quicgym::environment
