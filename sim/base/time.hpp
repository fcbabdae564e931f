// Simulated time: integer nanoseconds since the simulation began.
#pragma once

#include <cstdint>
#include <limits>

namespace quicgym {

using Time = std::int64_t;

inline constexpr Time kMicrosecond = 1'000;
inline constexpr Time kMillisecond = 1'000'000;
inline constexpr Time kSecond = 1'000'000'000;
inline constexpr Time kNever = std::numeric_limits<Time>::max();

inline constexpr double to_seconds(Time time) {
    return static_cast<double>(time) * 1e-9;
}

}  // namespace quicgym
