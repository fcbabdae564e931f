// The exact integral over time of a quantity that changes in steps, such as a window or a queue.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/time.hpp"

namespace quicgym {

class TimeIntegral {
public:
    explicit TimeIntegral(Time start = 0, std::uint64_t level = 0) : since_(start), level_(level) {}

    // The quantity has this level from `now` on. Before the start there is nothing to integrate.
    void set(Time now, std::uint64_t level) {
        if (level == level_) return;
        if (now > since_) {
            sum_ += static_cast<Wide>(level_) * static_cast<Wide>(now - since_);
            maximum_ = std::max(maximum_, level_);
            since_ = now;
        }
        level_ = level;
    }

    std::uint64_t level() const { return level_; }

    // From the start to `now`, in the level's unit times seconds.
    double until(Time now) const {
        const Wide open = now > since_ ? static_cast<Wide>(level_) * static_cast<Wide>(now - since_) : 0;
        return static_cast<double>(sum_ + open) * 1e-9;
    }
    // Of the levels that lasted, and the present one.
    std::uint64_t maximum() const { return std::max(maximum_, level_); }

private:
    using Wide = unsigned __int128;  // bytes times nanoseconds

    Time since_;
    std::uint64_t level_;
    std::uint64_t maximum_ = 0;
    Wide sum_ = 0;
};

}  // namespace quicgym
