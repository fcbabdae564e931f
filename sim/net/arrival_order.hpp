// Puts the packets that reach a link within a window in order of time, across flows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/net/link.hpp"

namespace quicgym::net {

struct Arrival {
    Transit transit;
    std::uint64_t flow;

    // By arrival, then by the moment at which the last hop scheduled it, then by flow.
    friend bool operator<(const Arrival& a, const Arrival& b) {
        return a.transit != b.transit ? a.transit < b.transit : a.flow < b.flow;
    }
};

// A bucket sort by arrival. There are twice as many buckets as packets, so that most hold one or none:
// unlike a merge by comparisons, whose outcomes no processor can predict, its cost per packet does not
// grow with the number of flows.
class ArrivalOrder {
public:
    void clear() { unordered_.clear(); }
    void add(const Transit& transit, std::uint64_t flow) { unordered_.push_back({transit, flow}); }

    const std::vector<Arrival>& sort() {
        const std::size_t count = unordered_.size();
        ordered_.resize(count);
        if (count == 0) return ordered_;
        Time first = kNever;
        Time last = 0;
        for (const Arrival& arrival : unordered_) {
            first = std::min(first, arrival.transit.arrival);
            last = std::max(last, arrival.transit.arrival);
        }
        const std::size_t buckets = std::bit_ceil(2 * count);
        const auto range_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(last - first)));
        const int shift = std::max(0, range_bits - std::countr_zero(buckets));
        const auto bucket_of = [=](const Arrival& arrival) {
            return static_cast<std::size_t>((arrival.transit.arrival - first) >> shift);
        };

        ends_.assign(buckets, 0);
        for (const Arrival& arrival : unordered_) ++ends_[bucket_of(arrival)];
        std::uint32_t total = 0;
        for (std::uint32_t& end : ends_) {
            const std::uint32_t in_bucket = end;
            end = total;  // where the bucket begins; filling it moves this to its end
            total += in_bucket;
        }
        for (const Arrival& arrival : unordered_) ordered_[ends_[bucket_of(arrival)]++] = arrival;

        std::uint32_t begin = 0;
        for (const std::uint32_t end : ends_) {
            if (end - begin > 1) std::sort(ordered_.data() + begin, ordered_.data() + end);
            begin = end;
        }
        return ordered_;
    }

private:
    std::vector<Arrival> unordered_;
    std::vector<Arrival> ordered_;
    std::vector<std::uint32_t> ends_;
};

}  // namespace quicgym::net
