// Simulations for Python: quicgym._core binds what all hosts of the endpoints have, each host derives from
// it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/simulation.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

template <class Element>
nb::bytes as_bytes(const std::vector<Element>& elements) {
    return nb::bytes(elements.data(), elements.size() * sizeof(Element));
}

inline nb::dict as_dict(const FlowStatistics& statistics) {
    nb::dict result;
    FlowStatistics::for_each_field([&](const char* name, auto field) {
        result[name] = statistics.*field;
        if (std::string_view(name) == "completion" && statistics.completion == kNever)
            result[name] = nb::none();
    });
    return result;
}

inline nb::dict as_dict(const ShortFlowTotals& totals) {
    nb::dict result;
    ShortFlowTotals::for_each_field([&](const char* name, auto field) { result[name] = totals.*field; });
    return result;
}

inline nb::dict as_dict(const ControllerSnapshot& snapshot) {
    nb::dict result;
    result["window_bytes"] = snapshot.window_bytes;
    result["pacing_rate"] = snapshot.pacing_rate;
    result["mode"] = static_cast<int>(snapshot.mode);
    result["bandwidth_estimate"] = snapshot.bandwidth_estimate;
    result["round_trip_estimate"] = snapshot.round_trip_estimate;
    result["queue_estimate_packets"] = snapshot.queue_estimate_packets;
    return result;
}

// A host of the endpoints, derived from what bind_simulation has bound.
template <class Host>
nb::class_<Host, Simulation> bind_host(nb::module_& module, const char* name) {
    return nb::class_<Host, Simulation>(module, name)
        .def(nb::init<const Scenario&, std::uint64_t>(), nb::arg("scenario"), nb::arg("seed"));
}

}  // namespace quicgym::bindings
