// Sizes drawn from a table of cumulative probabilities.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/fields.hpp"
#include "sim/base/random.hpp"

namespace quicgym {

struct SizePoint {
    std::uint64_t size_bytes = 0;
    double cumulative_probability = 0.0;

    QUICGYM_FIELDS(SizePoint, size_bytes, cumulative_probability)
};

// Straight between the points, which ascend in both; the last probability is 1.
class SizeDistribution {
public:
    explicit SizeDistribution(std::vector<SizePoint> points) : points_(std::move(points)) {}

    // At least one byte.
    std::uint64_t draw(Random& random) const {
        const double probability = random.uniform();
        const auto above = std::lower_bound(
            points_.begin(), points_.end(), probability,
            [](const SizePoint& point, double value) { return point.cumulative_probability < value; });
        if (above == points_.begin()) return std::max<std::uint64_t>(1, above->size_bytes);
        const SizePoint& below = *std::prev(above);
        const double part = (probability - below.cumulative_probability) /
                            (above->cumulative_probability - below.cumulative_probability);
        const auto width = static_cast<double>(above->size_bytes - below.size_bytes);
        return std::max<std::uint64_t>(
            1, below.size_bytes + static_cast<std::uint64_t>(std::ceil(part * width)));
    }

private:
    std::vector<SizePoint> points_;
};

}  // namespace quicgym
