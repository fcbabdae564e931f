// Controllers in extension modules of other packages, on both engines.
#pragma once

#include <nanobind/nanobind.h>

#include "sim/scenario.hpp"

namespace quicgym::bindings {

// Makes the controller that a capsule of controllers/plugin.hpp describes. Throws a TypeError for another
// capsule; the factory throws std::invalid_argument for a wrong parameter.
ControllerFactory plugin_controller_factory(const nanobind::capsule& capsule);

void bind_plugin_controllers(nanobind::module_& module);

}  // namespace quicgym::bindings
