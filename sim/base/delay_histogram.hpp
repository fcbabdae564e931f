// Delays in logarithmic buckets: exact sum, quantiles within 0.8%, memory for the octaves that have samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "sim/base/time.hpp"

namespace quicgym {

// A bucket that has samples.
struct DelayBucket {
    std::uint32_t number;
    std::uint32_t count;
};
using DelayBuckets = std::vector<DelayBucket>;  // in order of their numbers

// A packet adds to it twice, once in its queue and once at its receiver, so it keeps what cannot be told from
// the buckets and nothing else.
class DelayHistogram {
public:
    void add(Time delay) {
        const std::size_t place =
            bucket_of(delay) - first_;  // far beyond the end where it is below the first
        if (place >= counts_.size()) [[unlikely]] {
            add_octave(delay);
        } else {
            ++counts_[place];
        }
        sum_ += delay;
    }

    // Takes another's samples as well.
    DelayHistogram& operator+=(const DelayHistogram& other) {
        for (std::size_t place = 0; place < other.counts_.size(); ++place) {
            if (other.counts_[place] == 0) continue;
            const std::size_t bucket = other.first_ + place;
            make_room(bucket);
            counts_[bucket - first_] += other.counts_[place];
        }
        sum_ += other.sum_;
        return *this;
    }

    // Goes through the buckets.
    std::uint64_t count() const { return std::reduce(counts_.begin(), counts_.end(), std::uint64_t{0}); }
    Time sum() const { return sum_; }
    double sum_seconds() const { return to_seconds(sum_); }

    DelayBuckets buckets() const {
        DelayBuckets filled;
        for (std::size_t place = 0; place < counts_.size(); ++place) {
            if (counts_[place] == 0) continue;
            filled.push_back({static_cast<std::uint32_t>(first_ + place), counts_[place]});
        }
        return filled;
    }

    // The middle of the bucket that holds the sample of rank ceil(quantile · count); 0 without samples.
    static double quantile_seconds(const DelayBuckets& buckets, double quantile) {
        std::uint64_t count = 0;
        for (const DelayBucket& bucket : buckets) count += bucket.count;
        const auto rank = static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(count)));
        std::uint64_t seen = 0;
        for (const DelayBucket& bucket : buckets) {
            seen += bucket.count;
            if (seen >= rank) return middle_seconds(bucket.number);
        }
        return 0.0;
    }

    // The samples that came between two times of one histogram.
    static DelayBuckets between(const DelayBuckets& earlier, const DelayBuckets& later) {
        DelayBuckets added;
        auto before = earlier.begin();
        for (const DelayBucket& bucket : later) {
            const bool had_samples = before != earlier.end() && before->number == bucket.number;
            const std::uint32_t count = bucket.count - (had_samples ? (before++)->count : 0);
            if (count > 0) added.push_back({bucket.number, count});
        }
        return added;
    }

private:
    static constexpr int kMantissaBits = 6;
    static constexpr std::size_t kBucketsPerOctave = 1U << kMantissaBits;
    static constexpr int kSmallestExponent = 10;  // about 1 µs
    static constexpr int kOctaves = 31;           // up to about 2199 s
    static constexpr Time kSmallest = Time{1} << kSmallestExponent;
    static constexpr Time kLargest = (Time{1} << (kSmallestExponent + kOctaves)) - 1;

    // A floating-point number holds exponent and mantissa next to one another, so its upper bits are the
    // bucket, and no instruction has to find the highest bit. Delays are exact in 53 bits.
    static std::size_t bucket_of(Time delay) {
        static_assert(std::numeric_limits<double>::is_iec559);
        constexpr int kDoubleMantissaBits = std::numeric_limits<double>::digits - 1;
        constexpr std::uint64_t kBias = std::numeric_limits<double>::max_exponent - 1;
        const auto value = static_cast<double>(std::max(delay, kSmallest));
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);  // Emscripten 3.1.6 has no std::bit_cast
        return (bits >> (kDoubleMantissaBits - kMantissaBits)) -
               (kBias + kSmallestExponent) * kBucketsPerOctave;
    }
    static double middle_seconds(std::uint32_t bucket) {
        const double octave =
            std::ldexp(1.0, kSmallestExponent + static_cast<int>(bucket / kBucketsPerOctave));
        const double position = static_cast<double>(bucket % kBucketsPerOctave) + 0.5;
        return octave * (1.0 + position / static_cast<double>(kBucketsPerOctave)) * 1e-9;
    }

    // The first sample of an octave, or one beyond the last octave.
    [[gnu::cold, gnu::noinline]] void add_octave(Time delay) {
        const std::size_t bucket = bucket_of(std::min(delay, kLargest));
        make_room(bucket);
        ++counts_[bucket - first_];
    }
    void make_room(std::size_t bucket) {
        const std::size_t begin = bucket / kBucketsPerOctave * kBucketsPerOctave;
        if (counts_.empty()) first_ = begin;
        if (begin < first_) {
            counts_.insert(counts_.begin(), first_ - begin, 0);
            first_ = begin;
        }
        counts_.resize(std::max(counts_.size(), begin + kBucketsPerOctave - first_));
    }

    std::vector<std::uint32_t> counts_;  // from the first octave that has a sample to the last one
    std::size_t first_ = 0;              // bucket
    Time sum_ = 0;
};

// Also knows at any time how many samples there are, and the lowest.
class RttHistogram : public DelayHistogram {
public:
    void add(Time rtt) {
        DelayHistogram::add(rtt);
        ++count_;
        lowest_ = std::min(lowest_, rtt);
    }

    std::uint64_t count() const { return count_; }
    Time lowest() const { return count_ ? lowest_ : 0; }

private:
    std::uint64_t count_ = 0;
    Time lowest_ = kNever;
};

}  // namespace quicgym
