// Sets of integers kept as ranges: received packet numbers and received stream offsets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quicgym::quic {

// A half-open range [begin, end).
struct Range {
    std::uint64_t begin;
    std::uint64_t end;
};

// Ascending, disjoint, not touching. Inserting at the upper end, which is what an ordered network
// causes, costs constant time. Memory is reused, so that a steady state allocates nothing.
class RangeSet {
public:
    // With a limit, the lowest ranges are forgotten once there are more than max_ranges.
    explicit RangeSet(std::size_t max_ranges = SIZE_MAX) : max_ranges_(max_ranges) { ranges_.reserve(8); }

    // Adds [begin, end) and returns how many of its members are new.
    std::uint64_t insert(std::uint64_t begin, std::uint64_t end) {
        if (begin >= end) return 0;
        if (ranges_.empty() || ranges_.back().end != begin) return insert_elsewhere(begin, end);
        ranges_.back().end = end;
        return end - begin;
    }

    // Removes what it has of [begin, end) and returns how much that was.
    std::uint64_t erase(std::uint64_t begin, std::uint64_t end) {
        if (begin >= end) return 0;
        auto range = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                                      [](const Range& one, std::uint64_t v) { return one.end <= v; });
        std::uint64_t removed = 0;
        while (range != ranges_.end() && range->begin < end) {
            const Range inside{std::max(begin, range->begin), std::min(end, range->end)};
            removed += inside.end - inside.begin;
            if (inside.begin > range->begin && inside.end < range->end) {
                const Range rest{inside.end, range->end};
                range->end = inside.begin;
                ranges_.insert(std::next(range), rest);
                return removed;
            }
            if (inside.begin > range->begin) {
                range++->end = inside.begin;
            } else if (inside.end < range->end) {
                range++->begin = inside.end;
            } else {
                range = ranges_.erase(range);
            }
        }
        return removed;
    }

    bool contains(std::uint64_t value) const {
        const auto above =
            std::upper_bound(ranges_.begin(), ranges_.end(), value,
                             [](std::uint64_t v, const Range& range) { return v < range.begin; });
        return above != ranges_.begin() && value < std::prev(above)->end;
    }

    bool empty() const { return ranges_.empty(); }
    const std::vector<Range>& ranges() const { return ranges_; }

private:
    // Not inlined, so that insert(), of every packet, is.
    [[gnu::noinline]] std::uint64_t insert_elsewhere(std::uint64_t begin, std::uint64_t end) {
        if (ranges_.empty() || begin > ranges_.back().end) {
            ranges_.push_back({begin, end});
            if (ranges_.size() > max_ranges_) ranges_.erase(ranges_.begin());
            return end - begin;
        }
        // The first range that touches or follows [begin, end), and the first that lies beyond it.
        auto first = std::lower_bound(ranges_.begin(), ranges_.end(), begin,
                                      [](const Range& range, std::uint64_t v) { return range.end < v; });
        auto last = first;
        std::uint64_t already = 0;
        Range merged{begin, end};
        for (; last != ranges_.end() && last->begin <= end; ++last) {
            const std::uint64_t overlap_begin = std::max(begin, last->begin);
            const std::uint64_t overlap_end = std::min(end, last->end);
            if (overlap_end > overlap_begin) already += overlap_end - overlap_begin;
            merged.begin = std::min(merged.begin, last->begin);
            merged.end = std::max(merged.end, last->end);
        }
        if (first == last) {
            ranges_.insert(first, merged);
            if (ranges_.size() > max_ranges_) ranges_.erase(ranges_.begin());
        } else {
            *first = merged;
            ranges_.erase(std::next(first), last);
        }
        return end - begin - already;
    }

    std::size_t max_ranges_;
    std::vector<Range> ranges_;
};

}  // namespace quicgym::quic
