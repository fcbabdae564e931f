#include "sim/environment/frame_observation.hpp"

#include <algorithm>
#include <cmath>

namespace quicgym::environment {

namespace {

float bounded(double value, float maximum) {
    return static_cast<float>(std::clamp(value, 0.0, static_cast<double>(maximum)));
}

double bdp_bytes(double highest_rate, const FlowState& state) {
    return highest_rate * to_seconds(state.min_rtt);
}

}  // namespace

FrameObserver::FrameObserver(std::size_t history_length, std::uint64_t max_datagram_bytes)
    : max_datagram_bytes_(max_datagram_bytes), history_(history_length * kFrameFeatures.size()) {}

void FrameObserver::start(const FlowState& state) {
    previous_ = state;
}

void FrameObserver::update(const FlowState& state, double gamma) {
    std::move(history_.begin() + kFrameFeatures.size(), history_.end(), history_.begin());
    write_frame(state, gamma, history_.data() + history_.size() - kFrameFeatures.size());
    previous_ = state;
}

void FrameObserver::write_frame(const FlowState& state, double gamma, float* out) {
    const TraceSample& now = state.sample;
    const TraceSample& before = previous_.sample;
    const double seconds = to_seconds(now.time - before.time);
    const double delivered = static_cast<double>(now.delivered_bytes - before.delivered_bytes);
    const double lost = static_cast<double>(now.lost_bytes - before.lost_bytes);
    const double window = static_cast<double>(now.window_bytes);
    const double min_rtt = to_seconds(state.min_rtt);
    highest_rate_ = std::max(highest_rate_, ratio(delivered, seconds));
    const double bdp = bdp_bytes(highest_rate_, state);

    // Without a sample in the interval, the last one.
    const std::uint64_t samples = state.rtt_samples - previous_.rtt_samples;
    const double mean_rtt =
        samples > 0 ? (state.rtt_sum_seconds - previous_.rtt_sum_seconds) / static_cast<double>(samples)
                    : to_seconds(now.rtt);
    // eBCC equations 3 to 5, which hold for any window.
    const double queue_packets =
        window * (1.0 - ratio(min_rtt, mean_rtt)) / static_cast<double>(max_datagram_bytes_);
    const double values[kFrameFeatures.size()] = {
        ratio(ratio(delivered, seconds), highest_rate_),
        ratio(ratio(static_cast<double>(now.sent_bytes - before.sent_bytes), seconds), highest_rate_),
        ratio(now.pacing_rate, highest_rate_),
        ratio(mean_rtt, min_rtt),
        ratio(lost, lost + delivered),
        ratio(static_cast<double>(now.in_flight_bytes), bdp),
        ratio(window, bdp),
        std::isfinite(gamma) && mean_rtt > 0.0 ? queue_packets / std::max(gamma, 1e-3) : 0.0,
    };
    for (std::size_t i = 0; i < kFrameFeatures.size(); ++i)
        out[i] = bounded(values[i], kFrameFeatures[i].maximum);
}

void FrameObserver::write(float* out) const {
    out = std::copy(history_.begin(), history_.end(), out);
    const double bdp_packets = bdp_bytes(highest_rate_, previous_) / static_cast<double>(max_datagram_bytes_);
    *out++ = bounded(std::log10(1.0 + bdp_packets) / 6.0, 1.0F);
    *out++ = bounded(std::log10(1.0 + to_seconds(previous_.min_rtt) * 1e3) / 5.0, 1.0F);
    for (std::size_t mode = 0; mode < kModes; ++mode) {
        *out++ = static_cast<std::size_t>(previous_.sample.mode) == mode ? 1.0F : 0.0F;
    }
}

std::vector<Element> frame_elements(std::size_t history_length) {
    std::vector<Element> elements;
    for (std::size_t age = history_length; age-- > 0;) {
        for (const Feature& feature : kFrameFeatures) {
            elements.push_back(
                {std::string(feature.name) + "[" + std::to_string(age) + "]", 0.0F, feature.maximum});
        }
    }
    for (const Feature& feature : kStateFeatures) {
        elements.push_back({std::string(feature.name), 0.0F, feature.maximum});
    }
    return elements;
}

}  // namespace quicgym::environment
