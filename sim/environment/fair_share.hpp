// The rates that flows through a chain of hops have where none can have more without another, which has
// less already, having less still.
#pragma once

#include <vector>

#include "sim/scenario.hpp"

namespace quicgym::environment {

// Writes one rate per flow, in the unit of the capacities, of which there is one per hop: max-min fairness
// by progressive filling (Bertsekas and Gallager, Data Networks, 2nd edition, 1992, section 6.5.2). With one
// hop, equal parts of it. Allocates nothing once it has had as many flows and hops.
class MaxMinFairness {
public:
    void share(const std::vector<double>& capacities, const std::vector<HopRange>& flows,
               std::vector<double>& rates);

private:
    std::vector<double> left_;              // of each hop's capacity, for flows that still rise
    std::vector<std::size_t> rising_;       // flows through each hop that still rise
    std::vector<unsigned char> is_rising_;  // per flow
};

}  // namespace quicgym::environment
