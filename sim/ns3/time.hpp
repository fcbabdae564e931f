// Between our nanoseconds and ns-3's time, whose resolution is the nanosecond too.
#pragma once

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "sim/base/time.hpp"

namespace quicgym::ns3_host {

inline ns3::Time to_ns3(Time time) {
    return ns3::Time(time);
}

inline Time now() {
    return ns3::Simulator::Now().GetTimeStep();
}

}  // namespace quicgym::ns3_host
