// Binds a host of the endpoints to Python; the native engine and the ns-3 host look the same there.
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

// envs/simulation/simulation.py reads the arrays as NumPy structured arrays with these offsets.
static_assert(sizeof(TraceSample) == 96 && offsetof(TraceSample, mode) == 88);
static_assert(sizeof(QueueSample) == 24);
static_assert(sizeof(Delivery) == 24 && offsetof(Delivery, time) == 16);
static_assert(sizeof(Transfer) == 32 && offsetof(Transfer, lost_packets) == 24);

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

template <class Host>
nb::class_<Host> bind_simulation(nb::module_& module, const char* name) {
    // Calls `method` with the host and, checked, the index of a flow.
    const auto of_flow = [](auto method) {
        return [=](Host& host, std::size_t flow) {
            const OneThread::Use use(host.one_thread());
            if (flow >= host.flow_count()) {
                throw std::invalid_argument("flow " + std::to_string(flow) + " does not exist; there are " +
                                            std::to_string(host.flow_count()));
            }
            return method(host, flow);
        };
    };
    const auto of_host = [](auto method) {
        return [=](Host& host) {
            const OneThread::Use use(host.one_thread());
            return method(host);
        };
    };
    return nb::class_<Host>(module, name)
        .def(nb::init<const Scenario&, std::uint64_t>(), nb::arg("scenario"), nb::arg("seed"))
        .def_prop_ro("now", of_host([](const Host& host) { return host.now(); }))
        .def(
            "run_until",
            [](Host& host, Time until) {
                const OneThread::Alone use(host.one_thread());
                host.run_until(until);
            },
            nb::arg("until"), nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("flow_count", &Host::flow_count)
        .def("statistics",
             of_flow([](const Host& host, std::size_t flow) { return as_dict(host.statistics(flow)); }))
        .def("snapshot",
             of_flow([](const Host& host, std::size_t flow) { return as_dict(host.snapshot(flow)); }))
        .def("parameters", of_flow([](const Host& host, std::size_t flow) { return host.parameters(flow); }))
        .def("set_parameters",
             [=](Host& host, std::size_t flow, const ParameterValues& values) {
                 of_flow([&](Host& checked, std::size_t index) { checked.set_parameters(index, values); })(
                     host, flow);
             })
        .def("trace", of_flow([](const Host& host, std::size_t flow) { return as_bytes(host.trace(flow)); }))
        .def_prop_ro("queue_occupancy_seconds",
                     of_host([](const Host& host) { return host.queue_occupancy_seconds(); }))
        .def(
            "queue_trace",
            [](const Host& host, std::size_t hop) {
                const OneThread::Use use(host.one_thread());
                if (hop >= host.hop_count()) {
                    throw std::invalid_argument("hop " + std::to_string(hop) + " does not exist; there are " +
                                                std::to_string(host.hop_count()));
                }
                return as_bytes(host.queue_trace(hop));
            },
            nb::arg("hop") = 0)
        .def("deliveries", of_host([](const Host& host) { return as_bytes(host.deliveries()); }))
        .def("requests",
             of_flow([](const Host& host, std::size_t flow) { return as_bytes(host.requests(flow)); }))
        .def("transfers", [](const Host& host, std::size_t entry) {
            const OneThread::Use use(host.one_thread());
            if (entry >= host.short_flow_count()) {
                throw std::invalid_argument("entry " + std::to_string(entry) +
                                            " of short flows does not exist; there are " +
                                            std::to_string(host.short_flow_count()));
            }
            return as_bytes(host.transfers(entry));
        });
}

}  // namespace quicgym::bindings
