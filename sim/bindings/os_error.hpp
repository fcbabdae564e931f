// Errors of the operating system, from C++ to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <system_error>

namespace quicgym::bindings {

// Calls it, and raises an error of the system as the OSError that Python knows.
template <class Call>
auto raising_os_error(Call call) {
    try {
        return call();
    } catch (const std::system_error& error) {
        PyErr_SetObject(PyExc_OSError, nanobind::make_tuple(error.code().value(), error.what()).ptr());
        throw nanobind::python_error();
    }
}

}  // namespace quicgym::bindings
