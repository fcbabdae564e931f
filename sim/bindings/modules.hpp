// The parts of quicgym._core, one function per file.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace quicgym::bindings {

void bind_scenario(nanobind::module_& module);
void bind_python_controllers(nanobind::module_& module);  // subclasses of quicgym.Controller
void bind_plugin_controllers(nanobind::module_& module);  // in extension modules of other packages
void bind_wire(nanobind::module_& module);
void bind_queues(nanobind::module_& module);
void bind_policy(nanobind::module_& module);
void bind_relay(nanobind::module_& module);
void bind_layouts(nanobind::module_& module);
void bind_simulation(nanobind::module_& module);
void bind_meter(nanobind::module_& module);  // after the environment
double bare_loop(std::uint64_t packets);

}  // namespace quicgym::bindings
