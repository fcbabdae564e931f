// sim/scenario.hpp and sim/capabilities.hpp for Python, field by field.
#include "sim/scenario.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "sim/bindings/controllers.hpp"
#include "sim/bindings/modules.hpp"
#include "sim/capabilities.hpp"
#include "sim/queue_disciplines.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

template <class Enumeration>
void bind_enum(nb::module_& module, const char* name) {
    nb::enum_<Enumeration> bound(module, name);
    for_each_value(Enumeration{},
                   [&](const char* value_name, Enumeration value) { bound.value(value_name, value); });
}

template <class Structure>
nb::class_<Structure> bind_structure(nb::module_& module, const char* name) {
    nb::class_<Structure> bound(module, name);
    bound.def(nb::init<>());
    Structure::for_each_field([&](const char* field_name, auto field) { bound.def_rw(field_name, field); });
    return bound;
}

}  // namespace

void bind_scenario(nb::module_& module) {
    bind_enum<QueueUnit>(module, "QueueUnit");
    bind_enum<LossKind>(module, "LossKind");
    bind_enum<JitterKind>(module, "JitterKind");
    bind_enum<ApplicationKind>(module, "ApplicationKind");
    bind_enum<Transport>(module, "Transport");
    bind_enum<DataDirection>(module, "DataDirection");
    bind_structure<LossModel>(module, "LossModel");
    bind_structure<LossStep>(module, "LossStep");
    bind_structure<RateStep>(module, "RateStep");
    bind_structure<DelayStep>(module, "DelayStep");
    bind_structure<Reroute>(module, "Reroute");
    bind_structure<Jitter>(module, "Jitter");
    bind_structure<Policer>(module, "Policer");
    bind_structure<Shaper>(module, "Shaper");
    bind_structure<Link>(module, "Link");
    bind_structure<SizePoint>(module, "SizePoint");
    bind_structure<PageObject>(module, "PageObject");
    bind_structure<Application>(module, "Application");
    bind_structure<Flow>(module, "Flow")
        .def(
            "set_python_controller",
            [](Flow& flow, const nb::object& info) {
                flow.controller_factory = python_controller_factory(info);
            },
            nb::arg("info"), "Takes the controller from ControllerInfo.python_class, not from the catalogue.")
        .def(
            "set_plugin_controller",
            [](Flow& flow, const nb::capsule& capsule) {
                flow.controller_factory = plugin_controller_factory(capsule);
            },
            nb::arg("capsule"), "Takes the controller from ControllerInfo.plugin, not from the catalogue.");
    bind_structure<ShortFlows>(module, "ShortFlows");
    bind_structure<Wifi>(module, "Wifi");
    bind_structure<Scenario>(module, "Scenario");

    nb::class_<Problem>(module, "Problem", "What is wrong with a part of a scenario.")
        .def_ro("field", &Problem::field)
        .def_ro("text", &Problem::text)
        .def_ro("remedy", &Problem::remedy);
    module.def("queue_problem", &queue_problem, nb::arg("link"),
               "What the queue discipline of a link cannot do; None: nothing is wrong.");
    module.def("chain_problem", &chain_problem, nb::arg("scenario"),
               "Why no engine simulates a scenario's chain; None: nothing is wrong.");
    module.attr("MAX_HOPS") = kMaxHops;

    bind_enum<Engine>(module, "Engine");
    nb::class_<Capability>(module, "Capability")
        .def_ro("name", &Capability::name)
        .def_ro("text", &Capability::text)
        .def_ro("native", &Capability::native)
        .def_ro("ns3", &Capability::ns3);
    module.def("capabilities", &capabilities, "What not every engine can do.");
    module.def(
        "lacking", &lacking, nb::arg("scenario"), nb::arg("engine"),
        "The fields of a scenario that the engine cannot do, as `bottleneck.queue.discipline = codel`.");
}

}  // namespace quicgym::bindings
