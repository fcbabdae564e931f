#include "sim/environment/capacity.hpp"

#include <algorithm>

namespace quicgym::environment {

namespace {

constexpr double kOpportunityBytes = 1500.0;

}  // namespace

LinkCapacity::LinkCapacity(const Link& link)
    : rates_{{0, link.rate_bits_per_second}}, opportunities_ms_(link.delivery_opportunities_ms) {
    rates_.insert(rates_.end(), link.rate_schedule.begin(), link.rate_schedule.end());
}

double LinkCapacity::bytes_between(Time from, Time to) const {
    if (opportunities_ms_.empty()) return bytes_by_rate(from, to);
    return kOpportunityBytes * static_cast<double>(opportunities_until(to) - opportunities_until(from));
}

double LinkCapacity::bytes_by_rate(Time from, Time to) const {
    double bits = 0.0;
    for (std::size_t i = 0; i < rates_.size(); ++i) {
        const Time begin = std::max(from, rates_[i].at);
        const Time end = i + 1 < rates_.size() ? std::min(to, rates_[i + 1].at) : to;
        if (begin < end)
            bits += static_cast<double>(rates_[i].rate_bits_per_second) * to_seconds(end - begin);
    }
    return bits / 8.0;
}

// The trace repeats with its last time as period.
std::uint64_t LinkCapacity::opportunities_until(Time time) const {
    const auto milliseconds = static_cast<std::uint64_t>(time / kMillisecond);
    const std::uint64_t period = opportunities_ms_.back();
    const auto passed = std::upper_bound(opportunities_ms_.begin(), opportunities_ms_.end(),
                                         static_cast<std::uint32_t>(milliseconds % period));
    return milliseconds / period * opportunities_ms_.size() +
           static_cast<std::uint64_t>(passed - opportunities_ms_.begin());
}

}  // namespace quicgym::environment
