#include "sim/quic/media_encoder.hpp"

#include <algorithm>

namespace quicgym::quic {

namespace {

constexpr double kShareOfRate = 0.9;  // leaves room for headers and for what is sent again
constexpr double kLongestWaitSeconds = 0.1;

}  // namespace

std::uint64_t MediaEncoder::encode(double rate, std::uint64_t unsent_bytes) {
    const double wait = static_cast<double>(unsent_bytes) / rate;
    const double within = 8 * kShareOfRate * rate;
    std::size_t fitting = 0;
    while (fitting + 1 < rates_.size() && static_cast<double>(rates_[fitting + 1]) <= within) ++fitting;

    calm_frames_ = unsent_bytes == 0 ? calm_frames_ + 1 : 0;
    if (wait > to_seconds(kFrameInterval)) {
        chosen_ = std::min(chosen_, fitting);
    } else if (fitting > chosen_) {
        chosen_ = fitting;
        calm_frames_ = 0;
    } else if (calm_frames_ > kFramesPerSecond) {
        chosen_ = std::min(chosen_ + 1, rates_.size() - 1);
        calm_frames_ = 0;
    }
    if (wait > kLongestWaitSeconds) return 0;
    return std::max<std::uint64_t>(1, rates_[chosen_] / 8 / kFramesPerSecond);
}

}  // namespace quicgym::quic
