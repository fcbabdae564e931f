# What both distributions compile: the endpoint, the controllers and the decision process. Each module has
# a copy of its own, so `quicgym` needs no file of `quicgym-ns3` and the other way round.
#
# Takes QUICGYM_SOURCE, the folder that holds controllers/ and sim/, and QUICGYM_VERSION. Gives the target
# quicgym_simulator, and quicgym_interface(FILE), which tells a source file what it was compiled with.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Hidden, or the compiler may not inline what another library could replace.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

find_package(Threads REQUIRED)
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

set(QUICGYM_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread; empty for none")
include(CheckIPOSupported)
check_ipo_supported(RESULT ipo_supported OUTPUT ipo_message LANGUAGES CXX)
# Not for an editable installation, where linking anew is what an edit waits for.
if(ipo_supported AND NOT QUICGYM_SANITIZE AND NOT SKBUILD_STATE STREQUAL "editable")
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()

add_library(quicgym_warnings INTERFACE)
target_compile_options(quicgym_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion)

# Globs, so that a controller is one file and nothing else. An object library, because the linker
# leaves out of an archive what nothing refers to, and nothing refers to a controller or an action space:
# they register themselves.
set(folders "${QUICGYM_SOURCE}/controllers" "${QUICGYM_SOURCE}/sim" "${QUICGYM_SOURCE}/sim/base"
            "${QUICGYM_SOURCE}/sim/quic" "${QUICGYM_SOURCE}/sim/quic/recovery"
            "${QUICGYM_SOURCE}/sim/environment" "${QUICGYM_SOURCE}/sim/net/queues")
list(TRANSFORM folders APPEND "/*.cpp" OUTPUT_VARIABLE patterns)
file(GLOB simulator_sources CONFIGURE_DEPENDS ${patterns})
# How everything that includes the simulator's headers is compiled and linked.
add_library(quicgym_flags INTERFACE)
target_include_directories(quicgym_flags INTERFACE "${QUICGYM_SOURCE}")
target_link_libraries(quicgym_flags INTERFACE Threads::Threads)
# The same arithmetic in every build: no contraction into fused operations behind our back.
target_compile_options(quicgym_flags INTERFACE -ffp-contract=off)
if(QUICGYM_SANITIZE)
  target_compile_options(quicgym_flags INTERFACE -O1 -fsanitize=${QUICGYM_SANITIZE}
                         -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g)
  target_link_options(quicgym_flags INTERFACE -fsanitize=${QUICGYM_SANITIZE})
endif()

# `make setup PROFILE=1` compiles twice. The second build is optimised for the branches that the first one took while
# .ci/workload.py ran. What did not run then is optimised as ever, and the arithmetic stays the same.
set(QUICGYM_PROFILE "" CACHE STRING "generate: write a profile at exit; use: optimise by it; empty: neither; gcc only")
if(QUICGYM_PROFILE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "QUICGYM_PROFILE needs gcc; set CXX=g++, or leave it empty")
  endif()
  set(profile_flag "-fprofile-${QUICGYM_PROFILE}=${CMAKE_CURRENT_BINARY_DIR}/profile")
  target_compile_options(quicgym_flags INTERFACE ${profile_flag} -fprofile-partial-training -Wno-missing-profile)
  target_link_options(quicgym_flags INTERFACE ${profile_flag})
endif()

add_library(quicgym_simulator OBJECT EXCLUDE_FROM_ALL ${simulator_sources})
target_link_libraries(quicgym_simulator PUBLIC quicgym_flags PRIVATE quicgym_warnings)
# Parsed once; they are the standard library's, and every file still includes what it uses.
target_precompile_headers(quicgym_simulator PRIVATE <algorithm> <cmath> <functional> <map> <memory> <optional> <sstream>
                          <stdexcept> <string> <vector>)

# The two modules hand each other C++ objects, so they must come from the same sources: this digest of them
# is in both modules, and quicgym_ns3 compares the two when it is imported.
list(TRANSFORM folders APPEND "/*.hpp" OUTPUT_VARIABLE patterns)
file(GLOB shared_headers CONFIGURE_DEPENDS ${patterns} "${QUICGYM_SOURCE}/sim/bindings/*.hpp")
set(shared_files ${simulator_sources} ${shared_headers})
list(SORT shared_files)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shared_files})
set(digests "")
foreach(shared_file IN LISTS shared_files)
  file(SHA256 "${shared_file}" digest)
  cmake_path(RELATIVE_PATH shared_file BASE_DIRECTORY "${QUICGYM_SOURCE}" OUTPUT_VARIABLE name)
  string(APPEND digests "${name} ${digest}\n")
endforeach()
if(QUICGYM_SANITIZE)
  string(APPEND digests "sanitized: ${QUICGYM_SANITIZE}\n")
endif()
string(SHA256 quicgym_digest "${digests}")
string(SUBSTRING "${quicgym_digest}" 0 12 quicgym_digest)
message(STATUS "quicgym ${QUICGYM_VERSION}, digest of the shared sources ${quicgym_digest}")

# The simulator's objects in a library, whose name has all that they depend on: quicgym-ns3 takes it from quicgym's build
# in the same checkout, and compiles only where it is not.
string(SHA256 quicgym_build "${quicgym_digest} ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS}
                             ${CMAKE_BUILD_TYPE} ${CMAKE_INTERPROCEDURAL_OPTIMIZATION} ${QUICGYM_PROFILE}")
string(SUBSTRING "${quicgym_build}" 0 12 quicgym_build)
set(quicgym_library "quicgym_simulator-${quicgym_build}")

# An import of an editable installation compiles what has changed. Says so before: a minute of silence looks like
# a hang. Takes patterns of the sources beside the shared ones.
function(quicgym_announce)
  if(NOT SKBUILD_STATE STREQUAL "editable")
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${ARGN})
  set(stamp "${CMAKE_CURRENT_BINARY_DIR}/announced")
  # In the terminal's pool, whose output Ninja does not hold back.
  add_custom_command(
    OUTPUT "${stamp}"
    COMMAND sh -c "echo 'quicgym: C++ has changed: compiling, which takes up to minutes' >&2"
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS ${sources} ${shared_files}
    USES_TERMINAL VERBATIM)
  add_custom_target(quicgym_announcement DEPENDS "${stamp}")
  add_dependencies(quicgym_simulator quicgym_announcement)
endfunction()

function(quicgym_interface file)
  set_property(
    SOURCE "${file}" APPEND
    PROPERTY COMPILE_DEFINITIONS "QUICGYM_VERSION=\"${QUICGYM_VERSION}\""
             "QUICGYM_SOURCE_DIGEST=\"${quicgym_digest}\"")
endfunction()
