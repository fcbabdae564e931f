// Controllers in extension modules of other packages, on both engines.
#include <string>

#include "controllers/plugin.hpp"
#include "sim/bindings/controllers.hpp"
#include "sim/bindings/modules.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

const ControllerSpecification& specification_in(const nb::capsule& capsule) {
    const char* name = PyCapsule_GetName(capsule.ptr());
    if (name == nullptr || std::string(name) != kControllerCapsule) {
        throw nb::type_error(("it was built for " + std::string(name ? name : "something else") +
                              ", this quicgym takes " + kControllerCapsule +
                              "; build it again against quicgym.get_include()")
                                 .c_str());
    }
    return *static_cast<const ControllerSpecification*>(PyCapsule_GetPointer(capsule.ptr(), name));
}

}  // namespace

void bind_plugin_controllers(nb::module_& module) {
    module.attr("CONTROLLER_CAPSULE") = kControllerCapsule;
    module.def(
        "describe_plugin", [](const nb::capsule& capsule) { return describe(specification_in(capsule)); },
        nb::arg("capsule"),
        "A controller of another package's extension module, as the catalogue describes its own.");
    module.def(
        "plugin_wants_l4s",
        [](const nb::capsule& capsule, const nb::dict& parameters) {
            return plugin_controller_factory(capsule)(to_parameter_values(parameters), kUsualDatagramBytes)
                ->wants_l4s();
        },
        nb::arg("capsule"), nb::arg("parameters"), "The same as wants_l4s() for such a controller.");
}

ControllerFactory plugin_controller_factory(const nb::capsule& capsule) {
    return [specification = specification_in(capsule)](const ParameterValues& values,
                                                       std::uint64_t max_datagram_bytes) {
        return specification.make(complete_parameters(specification, values), max_datagram_bytes);
    };
}

}  // namespace quicgym::bindings
