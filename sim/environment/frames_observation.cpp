// The observation layout `frames`: a history of frames, one for each decision interval, and the state.
#include "sim/environment/frames_observation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sim/environment/frame_history.hpp"

namespace quicgym::environment {

namespace {

// Once, after the history; then the controller's mode.
inline constexpr std::array<BoundedFeature, 2> kStateFeatures{{
    {"bdp", 0.0F, 1.0F, "log10(1 + BDP in datagrams) / 6"},
    {"min_rtt", 0.0F, 1.0F, "log10(1 + minimum RTT in ms) / 5"},
}};

class FrameObserver final : public FrameHistory<FrameObserver> {
public:
    static constexpr const auto& kFeatures = kFrameFeatures;

    using FrameHistory::FrameHistory;

    void update(const FlowState& state, double gamma) override;
    void values(const FlowState& before, const FlowState& now, double* out);
    float* write(float* out) const override;
    static std::vector<Element> elements(std::size_t history_length);

private:
    double gamma_ = 0.0;         // packets, after the last interval
    double highest_rate_ = 0.0;  // bytes per second
};

double bdp_bytes(double highest_rate, const FlowState& state) {
    return highest_rate * to_seconds(state.min_rtt);
}

void FrameObserver::update(const FlowState& state, double gamma) {
    gamma_ = gamma;
    FrameHistory::update(state, gamma);
}

void FrameObserver::values(const FlowState& before_state, const FlowState& state, double* out) {
    const TraceSample& now = state.sample;
    const TraceSample& before = before_state.sample;
    const double seconds = to_seconds(now.time - before.time);
    const double delivered = static_cast<double>(now.delivered_bytes - before.delivered_bytes);
    const double lost = static_cast<double>(now.lost_bytes - before.lost_bytes);
    const double window = static_cast<double>(now.window_bytes);
    const double min_rtt = to_seconds(state.min_rtt);
    highest_rate_ = std::max(highest_rate_, ratio(delivered, seconds));
    const double bdp = bdp_bytes(highest_rate_, state);

    const double mean_rtt = mean_rtt_seconds(before_state, state, to_seconds(now.rtt));
    // eBCC equations 3 to 5, which hold for any window.
    const double queue_packets = window * (1.0 - ratio(min_rtt, mean_rtt)) / max_datagram_bytes_;
    out[0] = ratio(ratio(delivered, seconds), highest_rate_);
    out[1] = ratio(ratio(static_cast<double>(now.sent_bytes - before.sent_bytes), seconds), highest_rate_);
    out[2] = ratio(now.pacing_rate, highest_rate_);
    out[3] = ratio(mean_rtt, min_rtt);
    out[4] = ratio(lost, lost + delivered);
    out[5] = ratio(static_cast<double>(now.in_flight_bytes), bdp);
    out[6] = ratio(window, bdp);
    out[7] = std::isfinite(gamma_) && mean_rtt > 0.0 ? queue_packets / std::max(gamma_, 1e-3) : 0.0;
}

float* FrameObserver::write(float* out) const {
    out = write_frames(out);
    const FlowState& now = latest();
    const double bdp_packets = bdp_bytes(highest_rate_, now) / max_datagram_bytes_;
    *out++ = bounded(std::log10(1.0 + bdp_packets) / 6.0, kStateFeatures[0]);
    *out++ = bounded(std::log10(1.0 + to_seconds(now.min_rtt) * 1e3) / 5.0, kStateFeatures[1]);
    return write_modes(now.sample.mode, out);
}

std::vector<Element> FrameObserver::elements(std::size_t history_length) {
    std::vector<Element> elements = FrameHistory::elements(history_length);
    for (const BoundedFeature& feature : kStateFeatures) {
        elements.push_back({std::string(feature.name), feature.minimum, feature.maximum});
    }
    add_mode_elements(elements);
    return elements;
}

const RegisteredObservationLayout<FrameObserver> kRegistered("frames");

}  // namespace

}  // namespace quicgym::environment
