// How much a flow's rate varies: bytes in whole one-second bins, counted from the flow's start.
#pragma once

#include <cstdint>

#include "sim/base/time.hpp"

namespace quicgym {

// Bins that are over.
struct RateSums {
    using Wide = unsigned __int128;  // squares of bytes per second

    std::uint64_t count = 0;
    Wide sum = 0;
    Wide squares = 0;

    void add(Wide bytes) {
        ++count;
        sum += bytes;
        squares += bytes * bytes;
    }
    RateSums since(const RateSums& earlier) const {
        return {count - earlier.count, sum - earlier.sum, squares - earlier.squares};
    }
    // Population variance over the bins, in (bytes per second)^2; 0 without a bin.
    double variance() const {
        if (count == 0) return 0.0;
        const auto bins = static_cast<double>(count);
        return static_cast<double>(count * squares - sum * sum) / (bins * bins);
    }
};

class RateBins {
public:
    // Bins that are not over at `end` do not count.
    RateBins(Time start, Time end) : end_(end), bin_end_(start) { next_bin(); }

    // The bytes in total up to and without `now`: what happens at a bin's end belongs to the next one.
    // Call it before counting bytes at `now`.
    void advance(Time now, std::uint64_t total_bytes) {
        while (bin_end_ <= now) close_bin(total_bytes);
    }

    // The flow ended at `now`, before the end that was given.
    void finish(Time now, std::uint64_t total_bytes) {
        advance(now, total_bytes);
        bin_end_ = kNever;
    }

    // The sums that `advance` would leave.
    RateSums at(Time now, std::uint64_t total_bytes) const {
        RateBins bins = *this;
        bins.advance(now, total_bytes);
        return bins.sums_;
    }

private:
    void next_bin() { bin_end_ = end_ - bin_end_ < kSecond ? kNever : bin_end_ + kSecond; }
    void close_bin(std::uint64_t total_bytes) {
        sums_.add(total_bytes - bytes_before_);
        bytes_before_ = total_bytes;
        next_bin();
    }

    Time end_;
    Time bin_end_;  // of the bin that is open; kNever: there is none
    std::uint64_t bytes_before_ = 0;
    RateSums sums_;
};

}  // namespace quicgym
