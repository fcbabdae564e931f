// What two extension modules must have in common to hand each other C++ objects.
#pragma once

#include <nanobind/nanobind.h>

#define QUICGYM_TEXT_OF(value) #value
#define QUICGYM_TEXT(value) QUICGYM_TEXT_OF(value)

namespace quicgym::bindings {

// Version, digest of the shared sources, nanobind's version and its name for the compiler's ABI. nanobind
// shares types only among modules with the same ABI; it cannot see that classes have changed.
inline constexpr const char kInterface[] =
    "quicgym " QUICGYM_VERSION ", sources " QUICGYM_SOURCE_DIGEST
    ", nanobind " QUICGYM_TEXT(NB_VERSION_MAJOR) "." QUICGYM_TEXT(NB_VERSION_MINOR) "." QUICGYM_TEXT(
        NB_VERSION_PATCH) " " NB_PLATFORM_ABI_TAG;

}  // namespace quicgym::bindings
