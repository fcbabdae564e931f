// The names of a structure's members and of an enumeration's values, for the Python bindings, which read
// them.
#pragma once

#include <cstdint>

// macro(argument) for each of up to 64 arguments: the preprocessor expands nothing within its own expansion,
// and each EXPAND makes it look once more.
#define QUICGYM_EXPAND(...) \
    QUICGYM_EXPAND_2(QUICGYM_EXPAND_2(QUICGYM_EXPAND_2(QUICGYM_EXPAND_2(__VA_ARGS__))))
#define QUICGYM_EXPAND_2(...) \
    QUICGYM_EXPAND_1(QUICGYM_EXPAND_1(QUICGYM_EXPAND_1(QUICGYM_EXPAND_1(__VA_ARGS__))))
#define QUICGYM_EXPAND_1(...) \
    QUICGYM_EXPAND_0(QUICGYM_EXPAND_0(QUICGYM_EXPAND_0(QUICGYM_EXPAND_0(__VA_ARGS__))))
#define QUICGYM_EXPAND_0(...) __VA_ARGS__
#define QUICGYM_PARENTHESES ()
#define QUICGYM_EACH(macro, ...) __VA_OPT__(QUICGYM_EXPAND(QUICGYM_EACH_STEP(macro, __VA_ARGS__)))
#define QUICGYM_EACH_STEP(macro, first, ...) \
    macro(first) __VA_OPT__(QUICGYM_EACH_AGAIN QUICGYM_PARENTHESES(macro, __VA_ARGS__))
#define QUICGYM_EACH_AGAIN() QUICGYM_EACH_STEP

// Last in a structure: Structure::for_each_field(visit) calls visit("name", &Structure::name) for each one.
#define QUICGYM_FIELDS(Structure, ...)                 \
    template <class Visit>                             \
    static void for_each_field(Visit&& visit) {        \
        using Self = Structure;                        \
        QUICGYM_EACH(QUICGYM_VISIT_FIELD, __VA_ARGS__) \
    }
#define QUICGYM_VISIT_FIELD(field) visit(#field, &Self::field);

// Declares an enumeration; for_each_value(Enumeration{}, visit) calls visit("name", value) for each one.
#define QUICGYM_ENUM(Enumeration, ...)                     \
    enum class Enumeration : std::uint8_t { __VA_ARGS__ }; \
    template <class Visit>                                 \
    void for_each_value(Enumeration, Visit&& visit) {      \
        using enum Enumeration;                            \
        QUICGYM_EACH(QUICGYM_VISIT_VALUE, __VA_ARGS__)     \
    }
#define QUICGYM_VISIT_VALUE(value) visit(#value, value);

namespace quicgym {

// The name of an enumeration's value that QUICGYM_ENUM has declared.
template <class Enumeration>
const char* name_of(Enumeration value) {
    const char* found = nullptr;
    for_each_value(value, [&](const char* name, Enumeration one) {
        if (one == value) found = name;
    });
    return found;
}

}  // namespace quicgym
