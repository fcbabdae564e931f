// sim/relay/udp_flows.hpp for Python: quicgym's own endpoints over UDP sockets.
#ifdef __linux__

#include "sim/relay/udp_flows.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/bindings/modules.hpp"
#include "sim/bindings/os_error.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

using relay::UdpFlows;
using Pair = std::pair<std::string, std::uint16_t>;
using Plan = std::tuple<const Flow*, std::uint64_t, std::optional<std::string>>;

std::vector<relay::UdpFlowPlan> to_plans(const std::vector<Plan>& given) {
    std::vector<relay::UdpFlowPlan> plans;
    for (const auto& [flow, seed, policy] : given) {
        plans.push_back({*flow, seed, nullptr});
        if (policy) plans.back().policy = std::make_shared<policy::Policy>(policy::load_policy(*policy));
    }
    return plans;
}

Pair as_pair(const relay::Address& address) {
    return {address.host, address.port};
}

template <class Element>
nb::bytes bytes_of(const std::vector<Element>& rows) {
    return nb::bytes(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(Element));
}

nb::dict as_dict(const relay::FlowRecord& record) {
    nb::dict result;
    result["rows"] = bytes_of(record.rows);
    result["rtt"] = bytes_of(record.rtt);
    result["decision_lateness"] = bytes_of(record.decision_lateness);
    result["completion"] = record.completion;
    result["compared_bytes"] = record.compared_bytes;
    result["probe_timeouts"] = record.probe_timeouts;
    result["persistent_congestion"] = record.persistent_congestion;
    return result;
}

}  // namespace

void bind_udp_flows(nb::module_& module) {
    nb::class_<UdpFlows>(module, "UdpFlows", "See sim/relay/udp_flows.hpp. Times in ns.")
        .def(
            "__init__",
            [](UdpFlows* self, const std::vector<Plan>& plans, Time interval, Time duration) {
                raising_os_error([&] { new (self) UdpFlows(to_plans(plans), interval, duration); });
            },
            nb::arg("plans"), nb::arg("interval"), nb::arg("duration"),
            "A plan is a flow, the seed of its controller, and the path of a policy's description or None.")
        .def("sender_address",
             [](const UdpFlows& self, std::size_t flow) { return as_pair(self.sender_address(flow)); })
        .def("receiver_address",
             [](const UdpFlows& self, std::size_t flow) { return as_pair(self.receiver_address(flow)); })
        .def("connect",
             [](UdpFlows& self, std::size_t flow, const Pair& to_receiver, const Pair& to_sender) {
                 raising_os_error([&] {
                     self.connect(flow, {to_receiver.first, to_receiver.second},
                                  {to_sender.first, to_sender.second});
                 });
             })
        .def("start", &UdpFlows::start, nb::arg("zero"), nb::call_guard<nb::gil_scoped_release>())
        .def("stop",
             [](UdpFlows& self) {
                 raising_os_error([&] {
                     const nb::gil_scoped_release released;
                     self.stop();
                 });
             })
        .def_prop_ro("finished", &UdpFlows::finished)
        .def_prop_ro("has_realtime_priority", &UdpFlows::has_realtime_priority)
        .def("progress",
             [](const UdpFlows& self) {
                 const UdpFlows::Progress progress = self.progress();
                 return std::tuple(progress.time, progress.goodput_bytes, progress.smoothed_rtt);
             })
        .def("record_events", &UdpFlows::record_events)
        .def("events", [](const UdpFlows& self, std::size_t flow) { return bytes_of(self.events(flow)); })
        .def("record", [](const UdpFlows& self, std::size_t flow) { return as_dict(self.record(flow)); });
}

}  // namespace quicgym::bindings

#endif
