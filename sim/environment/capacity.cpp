#include "sim/environment/capacity.hpp"

#include <algorithm>
#include <array>

namespace quicgym::environment {

namespace {

// IEEE 802.11n-2009, 20.6: one spatial stream of so many subcarriers, so many bits each per symbol.
std::uint64_t wifi_rate_bits_per_second(const Wifi& wifi) {
    constexpr std::array<double, 8> kBitsPerSubcarrier{0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 4.5, 5.0};  // by MCS
    const double subcarriers = wifi.channel_width_mhz == 40 ? 108.0 : 52.0;
    const double symbol_seconds = wifi.short_guard_interval ? 3.6e-6 : 4e-6;
    return static_cast<std::uint64_t>(kBitsPerSubcarrier.at(wifi.mcs) * subcarriers / symbol_seconds + 0.5);
}

}  // namespace

BottleneckCapacity::BottleneckCapacity(const Scenario& scenario, std::size_t hop) {
    if (scenario.wifi) {
        rates_ = {{0, wifi_rate_bits_per_second(*scenario.wifi)}};
        return;
    }
    const Link& link = link_of_hop(scenario, DataDirection::forward, hop);
    rates_ = {{0, link.rate_bits_per_second}};
    rates_.insert(rates_.end(), link.rate_schedule.begin(), link.rate_schedule.end());
    for (const Reroute& reroute : link.reroutes) rates_.push_back({reroute.at, reroute.rate_bits_per_second});
    if (link.shaper) {
        for (RateStep& step : rates_) {
            step.rate_bits_per_second =
                std::min(step.rate_bits_per_second, link.shaper->rate_bits_per_second);
        }
    }
    opportunities_ms_ = link.delivery_opportunities_ms;
}

double BottleneckCapacity::bytes_between(Time from, Time to) const {
    if (opportunities_ms_.empty()) return bytes_by_rate(from, to);
    return static_cast<double>(kOpportunityBytes) *
           static_cast<double>(opportunities_until(to) - opportunities_until(from));
}

double BottleneckCapacity::bytes_by_rate(Time from, Time to) const {
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
std::uint64_t BottleneckCapacity::opportunities_until(Time time) const {
    const auto milliseconds = static_cast<std::uint64_t>(time / kMillisecond);
    const std::uint64_t period = opportunities_ms_.back();
    const auto passed = std::upper_bound(opportunities_ms_.begin(), opportunities_ms_.end(),
                                         static_cast<std::uint32_t>(milliseconds % period));
    return milliseconds / period * opportunities_ms_.size() +
           static_cast<std::uint64_t>(passed - opportunities_ms_.begin());
}

}  // namespace quicgym::environment
