// The bytes that a bottleneck could have sent in a span of time, no matter how much was offered to it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/scenario.hpp"

namespace quicgym::environment {

class BottleneckCapacity {
public:
    BottleneckCapacity(const Scenario& scenario, std::size_t hop);

    // Bytes on the wire: the rate integrated over (from, to], or 1500 for each of a trace's opportunities
    // in it. A shaper's rate bounds the rate; its burst does not count. After a reroute the rate is
    // that of the new path. With Wi-Fi the rate is that of the data symbols, of which no transfer gets all.
    double bytes_between(Time from, Time to) const;

private:
    double bytes_by_rate(Time from, Time to) const;
    std::uint64_t opportunities_until(Time time) const;

    std::vector<RateStep> rates_;  // from time 0 on
    std::vector<std::uint32_t> opportunities_ms_;
};

}  // namespace quicgym::environment
