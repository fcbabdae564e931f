// RTT samples in logarithmic buckets: exact mean, quantiles within 0.4%, constant memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"

namespace quicgym {

// A bucket that has samples.
struct RttBucket {
    std::uint32_t number;
    std::uint32_t count;
};
using RttBuckets = std::vector<RttBucket>;  // in order of their numbers

class RttHistogram {
public:
    void add(Time rtt) {
        ++counts_[bucket_of(rtt)];
        ++count_;
        sum_ += rtt;
        lowest_ = std::min(lowest_, rtt);
    }

    std::uint64_t count() const { return count_; }
    double sum_seconds() const { return to_seconds(sum_); }
    Time lowest() const { return count_ ? lowest_ : 0; }
    double mean_seconds() const { return count_ ? sum_seconds() / static_cast<double>(count_) : 0.0; }

    RttBuckets buckets() const {
        RttBuckets filled;
        std::uint64_t left = count_;
        for (std::size_t number = bucket_of(lowest_); left > 0; ++number) {
            if (counts_[number] == 0) continue;
            filled.push_back({static_cast<std::uint32_t>(number), counts_[number]});
            left -= counts_[number];
        }
        return filled;
    }

    // The middle of the bucket that holds the sample of rank ceil(quantile · count); 0 without samples.
    static double quantile_seconds(const RttBuckets& buckets, double quantile) {
        std::uint64_t count = 0;
        for (const RttBucket& bucket : buckets) count += bucket.count;
        const auto rank = static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(count)));
        std::uint64_t seen = 0;
        for (const RttBucket& bucket : buckets) {
            seen += bucket.count;
            if (seen >= rank) return middle_seconds(bucket.number);
        }
        return 0.0;
    }

    // The samples that came between two times of one histogram.
    static RttBuckets between(const RttBuckets& earlier, const RttBuckets& later) {
        RttBuckets added;
        auto before = earlier.begin();
        for (const RttBucket& bucket : later) {
            const bool had_samples = before != earlier.end() && before->number == bucket.number;
            const std::uint32_t count = bucket.count - (had_samples ? (before++)->count : 0);
            if (count > 0) added.push_back({bucket.number, count});
        }
        return added;
    }

private:
    static constexpr int kMantissaBits = 7;
    static constexpr std::uint64_t kBucketsPerOctave = 1U << kMantissaBits;
    static constexpr int kSmallestExponent = 10;  // about 1 µs
    static constexpr int kOctaves = 31;           // up to about 2199 s
    static constexpr std::uint64_t kSmallest = 1ULL << kSmallestExponent;
    static constexpr std::uint64_t kLargest = (1ULL << (kSmallestExponent + kOctaves)) - 1;

    static std::size_t bucket_of(Time rtt) {
        const auto nanoseconds = std::clamp(static_cast<std::uint64_t>(rtt), kSmallest, kLargest);
        const int exponent = 63 - std::countl_zero(nanoseconds);
        const std::uint64_t mantissa = (nanoseconds >> (exponent - kMantissaBits)) & (kBucketsPerOctave - 1);
        return static_cast<std::size_t>(exponent - kSmallestExponent) * kBucketsPerOctave + mantissa;
    }
    static double middle_seconds(std::uint32_t bucket) {
        const double octave =
            std::ldexp(1.0, kSmallestExponent + static_cast<int>(bucket / kBucketsPerOctave));
        const double position = static_cast<double>(bucket % kBucketsPerOctave) + 0.5;
        return octave * (1.0 + position / static_cast<double>(kBucketsPerOctave)) * 1e-9;
    }

    std::array<std::uint32_t, kOctaves * kBucketsPerOctave> counts_{};
    std::uint64_t count_ = 0;
    Time sum_ = 0;
    Time lowest_ = kNever;
};

}  // namespace quicgym
