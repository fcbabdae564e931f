// The encoder of real-time media: how many bytes the next frame has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/time.hpp"

namespace quicgym::quic {

inline constexpr std::uint64_t kFramesPerSecond = 30;
inline constexpr Time kFrameInterval = kSecond / static_cast<Time>(kFramesPerSecond);

// Follows the controller's rate along a ladder of rates. The rules and their numbers are ours:
// - A higher rate is taken as soon as it is within 90% of the controller's rate.
// - Once data waits for longer than a frame interval, the rate falls to one within those 90%.
// - A controller does not raise its rate for an application that leaves it unused. When nothing has waited at
//   30 frames in a row, the encoder therefore tries the next higher rate.
// - A frame is skipped while the data that waits takes the controller more than 100 ms.
class MediaEncoder {
public:
    // Rates in bits per second, ascending.
    explicit MediaEncoder(std::vector<std::uint64_t> rates) : rates_(std::move(rates)) {}

    // Returns the bytes of the next frame; 0: it is skipped. `rate`, in bytes per second, is the
    // controller's, and `unsent_bytes` wait to be sent for the first time.
    std::uint64_t encode(double rate, std::uint64_t unsent_bytes);

private:
    std::vector<std::uint64_t> rates_;
    std::size_t chosen_ = 0;
    std::uint64_t calm_frames_ = 0;  // in a row at which nothing waited
};

}  // namespace quicgym::quic
