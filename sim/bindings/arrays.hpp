// The records of a meter, as NumPy arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "sim/environment/meter.hpp"

namespace quicgym::bindings {

// An array that owns a copy of the values.
template <class Element>
nanobind::ndarray<nanobind::numpy, Element> to_array(const std::vector<Element>& values,
                                                     std::initializer_list<std::size_t> shape) {
    auto copy = std::make_unique<std::vector<Element>>(values);
    Element* const data = copy->data();
    const nanobind::capsule owner(
        copy.release(), [](void* pointer) noexcept { delete static_cast<std::vector<Element>*>(pointer); });
    return nanobind::ndarray<nanobind::numpy, Element>(data, shape, owner);
}

inline nanobind::ndarray<nanobind::numpy, std::uint64_t> received_of(const environment::Meter& meter,
                                                                     std::size_t flows) {
    return to_array(meter.received_bytes(), {meter.times().size(), flows});
}

}  // namespace quicgym::bindings
