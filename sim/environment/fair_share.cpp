#include "sim/environment/fair_share.hpp"

#include <algorithm>
#include <limits>

namespace quicgym::environment {

void MaxMinFairness::share(const std::vector<double>& capacities, const std::vector<HopRange>& flows,
                           std::vector<double>& rates) {
    left_ = capacities;
    rising_.assign(capacities.size(), 0);
    is_rising_.assign(flows.size(), 1);
    rates.assign(flows.size(), 0.0);
    for (const HopRange& hops : flows) {
        for (std::size_t hop = hops.first; hop <= hops.last; ++hop) ++rising_[hop];
    }
    for (std::size_t still_rising = flows.size(); still_rising > 0;) {
        // The hop that is full first when all rates rise together from here.
        std::size_t full = 0;
        double lowest = std::numeric_limits<double>::infinity();
        for (std::size_t hop = 0; hop < left_.size(); ++hop) {
            if (rising_[hop] == 0) continue;
            const double rate = left_[hop] / static_cast<double>(rising_[hop]);
            if (rate < lowest) {
                lowest = rate;
                full = hop;
            }
        }
        for (std::size_t flow = 0; flow < flows.size(); ++flow) {
            if (is_rising_[flow] == 0 || !flows[flow].contains(full)) continue;
            rates[flow] = lowest;
            is_rising_[flow] = 0;
            --still_rising;
            for (std::size_t hop = flows[flow].first; hop <= flows[flow].last; ++hop) {
                left_[hop] = std::max(0.0, left_[hop] - lowest);
                --rising_[hop];
            }
        }
    }
}

}  // namespace quicgym::environment
