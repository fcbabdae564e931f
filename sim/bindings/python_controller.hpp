// Controllers written in Python: subclasses of quicgym.Controller, on both engines.
#pragma once

#include <nanobind/nanobind.h>

#include "sim/scenario.hpp"

namespace quicgym::bindings {

// Makes an instance of `info.python_class` for a connection; `info` is a ControllerInfo. May be copied and
// called without the interpreter's lock. The factory and the controllers that it makes throw
// std::invalid_argument for a wrong parameter; what the Python code raises becomes a ControllerError.
ControllerFactory python_controller_factory(const nanobind::object& info);

void bind_python_controllers(nanobind::module_& module);

}  // namespace quicgym::bindings
