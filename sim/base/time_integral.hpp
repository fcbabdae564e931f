// The exact integral over time of a quantity that changes in steps, such as a window or a queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"

namespace quicgym {

class TimeIntegral {
public:
    explicit TimeIntegral(Time start = 0, std::uint64_t level = 0) : since_(start), level_(level) {}

    // The quantity has this level from `now` on. Before the start there is nothing to integrate.
    void set(Time now, std::uint64_t level) {
        if (level == level_) return;
        advance(now);
        level_ = level;
    }

    // From here on a new maximum is counted, too.
    void mark(Time now) {
        advance(now);
        maxima_.push_back(std::max(maximum_, level_));
        maximum_ = 0;
    }
    // Those that ended at a mark.
    const std::vector<std::uint64_t>& maxima() const { return maxima_; }

    std::uint64_t level() const { return level_; }

    // From the start to `now`, in the level's unit times seconds.
    double until(Time now) const {
        const Wide open = now > since_ ? static_cast<Wide>(level_) * static_cast<Wide>(now - since_) : 0;
        return static_cast<double>(sum_ + open) * 1e-9;
    }
    // The highest level that lasted for some time, or the present one if it is higher.
    std::uint64_t maximum() const {
        std::uint64_t highest = std::max(maximum_, level_);
        for (const std::uint64_t maximum : maxima_) highest = std::max(highest, maximum);
        return highest;
    }

private:
    using Wide = unsigned __int128;  // bytes times nanoseconds

    void advance(Time now) {
        if (now <= since_) return;
        sum_ += static_cast<Wide>(level_) * static_cast<Wide>(now - since_);
        maximum_ = std::max(maximum_, level_);
        since_ = now;
    }

    Time since_;
    std::uint64_t level_;
    std::uint64_t maximum_ = 0;  // since the last mark
    std::vector<std::uint64_t> maxima_;
    Wide sum_ = 0;
};

}  // namespace quicgym
