// By how much packets left later than the link's model says, in logarithmic buckets.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "sim/base/time.hpp"

namespace quicgym::relay {

class Lateness {
public:
    void add(Time late) {
        const auto nanoseconds = static_cast<std::uint64_t>(std::max<Time>(late, 0));
        ++counts_[bucket_of(std::min(nanoseconds, kLargest))];
        ++count_;
        max_ = std::max(max_, late);
    }

    std::uint64_t count() const { return count_; }
    Time max() const { return max_; }

    // The upper end of the bucket that holds the packet of rank ceil(quantile · count): at most 3% above.
    // 0 without packets.
    Time quantile(double quantile) const {
        const auto rank = static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(count_)));
        std::uint64_t seen = 0;
        for (std::size_t bucket = 0; bucket < counts_.size() && count_ > 0; ++bucket) {
            seen += counts_[bucket];
            if (seen >= rank && seen > 0) return std::min(end_of(bucket), max_);
        }
        return 0;
    }

private:
    static constexpr int kMantissaBits = 5;
    static constexpr std::uint64_t kPerOctave = 1U << kMantissaBits;
    static constexpr int kOctaves = 36;  // 69 s
    static constexpr std::uint64_t kLargest = (std::uint64_t{1} << kOctaves) - 1;

    // As many buckets as numbers below kPerOctave, then kPerOctave for each octave.
    static std::size_t bucket_of(std::uint64_t value) {
        if (value < kPerOctave) return value;
        const int shift = 63 - std::countl_zero(value) - kMantissaBits;
        return static_cast<std::size_t>(shift) * kPerOctave + (value >> shift);
    }
    static Time end_of(std::size_t bucket) {
        if (bucket < kPerOctave) return static_cast<Time>(bucket);
        const std::size_t shift = bucket / kPerOctave - 1;
        return static_cast<Time>(((bucket % kPerOctave + kPerOctave + 1) << shift) - 1);
    }

    std::array<std::uint64_t, (kOctaves - kMantissaBits + 1) * kPerOctave> counts_{};
    std::uint64_t count_ = 0;
    Time max_ = 0;
};

}  // namespace quicgym::relay
