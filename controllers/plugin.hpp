// A controller in an extension module of another package; its entry point names the module's attribute
// `controller`. Compile against the headers in quicgym.get_include(), with the compiler's C++20 and the
// same standard library as quicgym; nothing needs to be linked.
#pragma once

#include <Python.h>

#include "controllers/catalogue.hpp"

namespace quicgym {

// The number changes with whatever both sides must agree on: the classes of these headers and their
// layout. A module for another number is refused by name, before anything in it is called.
inline constexpr char kControllerCapsule[] = "quicgym.controller.6";

}  // namespace quicgym

// Defines an extension module of that name. `specification` is an expression that gives the controller's
// ControllerSpecification; the entry point, not its name, says how the controller is called.
#define QUICGYM_CONTROLLER_MODULE(module, specification)                                               \
    PyMODINIT_FUNC PyInit_##module() {                                                                 \
        static quicgym::ControllerSpecification instance = (specification);                            \
        static PyModuleDef definition = {                                                              \
            PyModuleDef_HEAD_INIT, #module, nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr}; \
        PyObject* result = PyModule_Create(&definition);                                               \
        PyObject* capsule = PyCapsule_New(&instance, quicgym::kControllerCapsule, nullptr);            \
        if (result == nullptr || capsule == nullptr ||                                                 \
            PyModule_AddObject(result, "controller", capsule) != 0) {                                  \
            Py_XDECREF(capsule);                                                                       \
            Py_XDECREF(result);                                                                        \
            return nullptr;                                                                            \
        }                                                                                              \
        return result;                                                                                 \
    }
