// How Python reads arrays of C++ structures: np.dtype(LAYOUTS["TraceSample"]).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <concepts>
#include <string>

#include "sim/bindings/modules.hpp"
#include "sim/net/recording.hpp"
#include "sim/quic/event_log.hpp"
#include "sim/simulation.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

template <class Structure>
nb::dict layout();

// Returns NumPy's name of a member's type.
template <class Member>
struct Format {
    static nb::object get() { return layout<Member>(); }
};
template <class Number>
    requires std::is_arithmetic_v<Number>
struct Format<Number> {
    static nb::object get() {
        const char kind = std::floating_point<Number> ? 'f' : std::is_signed_v<Number> ? 'i' : 'u';
        return nb::cast(kind + std::to_string(sizeof(Number)));
    }
};
template <class Enumeration>
    requires std::is_enum_v<Enumeration>
struct Format<Enumeration> : Format<std::underlying_type_t<Enumeration>> {};
template <class Element, std::size_t Size>
struct Format<std::array<Element, Size>> {
    static nb::object get() { return nb::make_tuple(Format<Element>::get(), nb::make_tuple(Size)); }
};

template <class Structure>
nb::dict layout() {
    nb::list names, formats, offsets;
    const Structure structure{};
    Structure::for_each_field([&](const char* name, auto field) {
        const auto& member = structure.*field;
        names.append(name);
        formats.append(Format<std::remove_cvref_t<decltype(member)>>::get());
        offsets.append(reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&structure));
    });
    nb::dict result;
    result["names"] = names;
    result["formats"] = formats;
    result["offsets"] = offsets;
    result["itemsize"] = sizeof(Structure);
    return result;
}

}  // namespace

void bind_layouts(nb::module_& module) {
    nb::dict layouts;
    layouts["TraceSample"] = layout<TraceSample>();
    layouts["FlowState"] = layout<FlowState>();
    layouts["QueueSample"] = layout<QueueSample>();
    layouts["Delivery"] = layout<Delivery>();
    layouts["Transfer"] = layout<Transfer>();
    layouts["SenderEvent"] = layout<quic::SenderEvent>();
    layouts["PassedPackets"] = layout<net::PassedPackets>();
    layouts["QueueRecord"] = layout<net::QueueRecord>();
    module.attr("LAYOUTS") = layouts;
    nb::list modes;
    for_each_value(ControllerMode{}, [&](const char* name, ControllerMode) { modes.append(name); });
    module.attr("MODES") = nb::tuple(modes);
}

}  // namespace quicgym::bindings
