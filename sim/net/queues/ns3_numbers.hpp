// ns-3's arithmetic and random numbers where a decision of a queue discipline hangs on their last bit.
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/time.hpp"

namespace quicgym::net {

// ns-3 multiplies nanoseconds by an inverse of 10^9 in 128-bit fixed point and rounds twice.
double ns3_seconds(Time time);

// MRG32k3a: L'Ecuyer, Good parameters and implementations for combined multiple recursive random number
// generators, Operations Research 47(1), 1999. Streams are 2^127 numbers apart and substreams 2^76: L'Ecuyer,
// Simard, Chen and Kelton, An object-oriented random-number package, Operations Research 50(6), 2002.
class Ns3Random {
public:
    // The numbers of a variable with AssignStreams(stream), where the simulation's seed is ns-3's run number
    // and ns-3's own seed is 1.
    Ns3Random(std::uint64_t seed, std::uint64_t stream);

    double uniform();  // in (0, 1)

private:
    std::array<std::uint64_t, 3> first_;
    std::array<std::uint64_t, 3> second_;
};

}  // namespace quicgym::net
