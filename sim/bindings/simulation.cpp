// The interface of all simulations in Python, and totals of flows at marks.
#include "sim/bindings/simulation.hpp"

#include <string>

#include "sim/bindings/modules.hpp"

namespace quicgym::bindings {

void bind_simulation(nb::module_& module) {
    nb::class_<FlowTotals>(module, "FlowTotals", "The totals of a flow at a mark.")
        .def(
            "statistics", [](const FlowTotals& totals) { return as_dict(totals.statistics); },
            "From the flow's start to the mark, as Simulation.statistics has them.")
        .def(
            "since",
            [](const FlowTotals& totals, const FlowTotals& earlier) {
                return as_dict(totals.since(earlier));
            },
            nb::arg("earlier"),
            "From an earlier mark of the same flow to this one. `start`, `completion`, `queues`, `min_rtt` and "
            "`lowest_rtt` are those at this mark; rates vary over the whole seconds that ended in between.");
    // Calls `method` with the simulation and the index of a flow, which is checked.
    const auto of_flow = [](auto method) {
        return [=](Simulation& simulation, std::size_t flow) {
            const OneThread::Use use(simulation.one_thread());
            if (flow >= simulation.flow_count()) {
                throw std::invalid_argument("flow " + std::to_string(flow) + " does not exist; there are " +
                                            std::to_string(simulation.flow_count()));
            }
            return method(simulation, flow);
        };
    };
    const auto of_short_flows = [](auto method) {
        return [=](const Simulation& simulation, std::size_t entry) {
            const OneThread::Use use(simulation.one_thread());
            if (entry >= simulation.short_flow_count()) {
                throw std::invalid_argument("entry " + std::to_string(entry) +
                                            " of short flows does not exist; there are " +
                                            std::to_string(simulation.short_flow_count()));
            }
            return method(simulation, entry);
        };
    };
    const auto of_simulation = [](auto method) {
        return [=](Simulation& simulation) {
            const OneThread::Use use(simulation.one_thread());
            return method(simulation);
        };
    };
    nb::class_<Simulation>(module, "Simulation", "A simulation on either engine; flows go by index.")
        .def_prop_ro("now", of_simulation([](const Simulation& simulation) { return simulation.now(); }))
        .def(
            "run_until",
            [](Simulation& simulation, Time until) {
                const OneThread::Alone use(simulation.one_thread());
                simulation.run_until(until);
            },
            nb::arg("until"), nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("flow_count", &Simulation::flow_count)
        .def("statistics", of_flow([](const Simulation& simulation, std::size_t flow) {
                 return as_dict(simulation.statistics(flow));
             }))
        .def("totals",
             of_flow([](Simulation& simulation, std::size_t flow) { return simulation.totals(flow); }),
             nb::arg("flow"), "A flow's totals now; the highest window is counted afresh from here on.")
        .def("snapshot", of_flow([](const Simulation& simulation, std::size_t flow) {
                 return as_dict(simulation.snapshot(flow));
             }))
        .def("state", of_flow([](const Simulation& simulation, std::size_t flow) {
                 return as_bytes(std::vector<FlowState>{simulation.state(flow)});
             }),
             nb::arg("flow"), "The FlowState of a flow, which agents' observations are made of.")
        .def("parameters", of_flow([](const Simulation& simulation, std::size_t flow) {
                 return simulation.parameters(flow);
             }))
        .def("set_parameters",
             [=](Simulation& simulation, std::size_t flow, const ParameterValues& values) {
                 of_flow([&](Simulation& checked, std::size_t index) {
                     checked.set_parameters(index, values);
                 })(simulation, flow);
             })
        .def("trace", of_flow([](const Simulation& simulation, std::size_t flow) {
                 return as_bytes(simulation.trace(flow));
             }))
        .def_prop_ro("queue_occupancy_seconds", of_simulation([](const Simulation& simulation) {
                         return simulation.queue_occupancy_seconds();
                     }))
        .def(
            "queue_trace",
            [](const Simulation& simulation, std::size_t hop) {
                const OneThread::Use use(simulation.one_thread());
                if (hop >= simulation.hop_count()) {
                    throw std::invalid_argument("hop " + std::to_string(hop) + " does not exist; there are " +
                                                std::to_string(simulation.hop_count()));
                }
                return as_bytes(simulation.queue_trace(hop));
            },
            nb::arg("hop") = 0)
        .def("deliveries",
             of_simulation([](const Simulation& simulation) { return as_bytes(simulation.deliveries()); }))
        .def("requests", of_flow([](const Simulation& simulation, std::size_t flow) {
                 return as_bytes(simulation.requests(flow));
             }))
        .def("short_flow_totals", of_short_flows([](const Simulation& simulation, std::size_t entry) {
                 return as_dict(simulation.short_flow_totals(entry));
             }),
             nb::arg("entry"), "What all connections of an entry of short flows have had, so far.")
        .def("transfers", of_short_flows([](const Simulation& simulation, std::size_t entry) {
                 return as_bytes(simulation.transfers(entry));
             }));
}

}  // namespace quicgym::bindings
