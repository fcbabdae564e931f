// quicgym._core: scenarios, controllers, the native engine, and what the benchmarks and tests need.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "sim/bindings/controllers.hpp"
#include "sim/bindings/environment.hpp"
#include "sim/bindings/interface.hpp"
#include "sim/bindings/modules.hpp"
#include "sim/bindings/simulation.hpp"
#include "sim/environment/capacity.hpp"
#include "sim/net/engine.hpp"

namespace nb = nanobind;

NB_MODULE(_core, module) {
    using namespace quicgym;
    // At exit the interpreter leaves objects behind, which is none of the user's business.
    nb::set_leak_warnings(false);
    module.attr("commit") = QUICGYM_COMMIT;
    module.attr("interface") = bindings::kInterface;
    bindings::bind_scenario(module);
    bind_controllers(module);
    bindings::bind_python_controllers(module);
    bindings::bind_plugin_controllers(module);
    bindings::bind_wire(module);
    bindings::bind_queues(module);
    bindings::bind_relay(module);
    bindings::bind_layouts(module);
    bindings::bind_simulation(module);
    bindings::bind_host<net::NativeSimulation>(module, "NativeSimulation")
        .def("record_events",
             [](net::NativeSimulation& self) {
                 const OneThread::Use use(self.one_thread());
                 self.record_events();
             })
        .def("events", [](const net::NativeSimulation& self, std::size_t flow) {
            const OneThread::Use use(self.one_thread());
            return bindings::as_bytes(self.events(flow));
        });
    bindings::bind_environment(module);
    bindings::bind_policy(module);
    bindings::bind_meter(module);
    bindings::bind_batch_over<net::NativeSimulation>(module, "native_batch");
    module.def("transmission_time_ns", &net::transmission_time, nb::arg("wire_bytes"),
               nb::arg("rate_bits_per_second"),
               "Nanoseconds that so many bytes take on a link of the native engine.");
    module.def(
        "capacity_bytes",
        [](const Scenario& scenario, std::size_t hop, const std::vector<Time>& times) {
            const environment::BottleneckCapacity capacity(scenario, hop);
            std::vector<double> result;
            result.reserve(times.size());
            Time before = 0;
            for (const Time time : times) {
                result.push_back(capacity.bytes_between(before, time));
                before = time;
            }
            return result;
        },
        nb::arg("scenario"), nb::arg("hop"), nb::arg("times"),
        "Bytes that a hop, from 0, could have sent up to each of the times in ns, since the one before it.");
    module.def(
        "bare_loop", &bindings::bare_loop, nb::arg("packets"), nb::call_guard<nb::gil_scoped_release>(),
        "CPU nanoseconds per packet of an event loop over first-in first-out rings, without transport.");
}
