#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <system_error>

#include "loader/agent.hpp"
#include "loader/fixed_point.hpp"
#include "loader/program.hpp"

namespace nb = nanobind;
using quicgym::linux_tcp::Agent;
using quicgym::linux_tcp::Constants;
using quicgym::linux_tcp::Program;
using quicgym::linux_tcp::Steering;

namespace {

std::string content(const nb::bytes& bytes) {
    return {bytes.c_str(), bytes.size()};
}

void raise_os_error(const std::exception_ptr& pointer, void*) {
    try {
        std::rethrow_exception(pointer);
    } catch (const std::system_error& error) {
        const nb::object made =
            nb::module_::import_("builtins").attr("OSError")(error.code().value(), error.what());
        PyErr_SetObject(PyExc_OSError, made.ptr());
    }
}

}  // namespace

NB_MODULE(_loader, module) {
    nb::register_exception_translator(raise_os_error);
    nb::class_<Program>(module, "Program",
                        "A BPF program that is registered as a congestion controller while it is open.")
        .def(
            "__init__",
            [](Program* self, const nb::bytes& object, const std::string& name, const Constants& constants,
               const nb::dict& contents) {
                std::map<std::string, std::string> maps;
                for (const auto [key, value] : contents)
                    maps[nb::cast<std::string>(key)] = content(nb::cast<nb::bytes>(value));
                std::string text = content(object);
                const nb::gil_scoped_release release;
                new (self) Program(std::move(text), name, constants, maps);
            },
            nb::arg("object"), nb::arg("name"), nb::arg("constants"), nb::arg("contents"))
        .def("close", &Program::close, "Ends the registration.")
        .def_prop_ro("verified_instructions", &Program::verified_instructions);
    nb::class_<Agent>(module, "Agent", "Steers the connections of the program `steered` from a thread.")
        .def(
            "__init__",
            [](Agent* self, const Program& program, const std::string& library, const std::string& controller,
               std::uintptr_t specification, const std::map<std::string, std::vector<double>>& parameters,
               const std::string& policy) {
                const nb::gil_scoped_release release;
                const auto* const described = reinterpret_cast<const void*>(specification);
                new (self) Agent(program, library, Steering{controller, described, parameters, policy});
            },
            nb::arg("program"), nb::arg("library"), nb::arg("controller"), nb::arg("specification"),
            nb::arg("parameters"), nb::arg("policy"), nb::keep_alive<1, 2>())
        .def("close", &Agent::close, nb::call_guard<nb::gil_scoped_release>(), "Ends the thread.")
        .def_prop_ro("problem", &Agent::problem);
    module.def("observe", &quicgym::linux_tcp::observe, nb::arg("is_recent"), nb::arg("datagram_bytes"),
               nb::arg("states"),
               "The observation after the last state, without the action in force, in units of 1 / 2^16.");
    module.def(
        "compute",
        [](const nb::bytes& network, const std::vector<std::vector<std::uint32_t>>& layers,
           const std::vector<std::int32_t>& inputs) {
            return quicgym::linux_tcp::compute(content(network), layers, inputs);
        },
        nb::arg("network"), nb::arg("layers"), nb::arg("inputs"), "The outputs of a network in integers.");
}
