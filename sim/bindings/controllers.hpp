// Declares the parts of the controllers' bindings that other bindings need.
#pragma once

#include <nanobind/nanobind.h>

#include "controllers/catalogue.hpp"
#include "sim/scenario.hpp"

namespace quicgym {

void bind_controllers(nanobind::module_& m);

inline constexpr std::uint64_t kUsualDatagramBytes = 1200;

// Name, description, source and parameters, as Python's ControllerInfo takes them.
nanobind::dict describe(const ControllerSpecification& specification);

// {"gamma": 30, "gain_cycle": [1.25, 0.75]} as ParameterValues; numbers become lists of one.
ParameterValues to_parameter_values(const nanobind::dict& values);

namespace bindings {

// Makes an instance of `info.python_class` for a connection; `info` is a ControllerInfo. May be copied and
// called without the interpreter's lock. The factory and the controllers that it makes throw
// std::invalid_argument for a wrong parameter; what the Python code raises becomes a ControllerError.
ControllerFactory python_controller_factory(const nanobind::object& info);

// Makes the controller that a capsule of controllers/plugin.hpp describes. Throws a TypeError for another
// capsule; the factory throws std::invalid_argument for a wrong parameter.
ControllerFactory plugin_controller_factory(const nanobind::capsule& capsule);

}  // namespace bindings

}  // namespace quicgym
