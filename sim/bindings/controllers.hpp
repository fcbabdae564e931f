// What other bindings need of the controllers' bindings.
#pragma once

#include <nanobind/nanobind.h>

#include "controllers/catalogue.hpp"

namespace quicgym {

void bind_controllers(nanobind::module_& m);

// Name, description, source and parameters, as Python's ControllerInfo takes them.
nanobind::dict describe(const ControllerSpecification& specification);

// {"gamma": 30, "gain_cycle": [1.25, 0.75]} as ParameterValues; numbers become lists of one.
ParameterValues to_parameter_values(const nanobind::dict& values);

}  // namespace quicgym
