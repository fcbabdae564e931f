// Batches of episodes for Python, over any host of the endpoints.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "sim/environment/batch.hpp"

namespace quicgym::bindings {

void bind_environment(nanobind::module_& module);

// `module.name(settings, simulations, agents_per_simulation, threads, record_events)` makes a batch over the
// host. A host that keeps no events, ns-3's, leaves the last argument unused; its caller refuses it.
template <class Host>
void bind_batch_over(nanobind::module_& module, const char* name) {
    namespace nb = nanobind;
    module.def(
        name,
        [](const environment::Settings& settings, std::size_t simulations, std::size_t agents_per_simulation,
           std::size_t threads, bool record_events) {
            const auto factory = [record_events](const Scenario& scenario,
                                                 std::uint64_t seed) -> std::unique_ptr<Simulation> {
                auto host = std::make_unique<Host>(scenario, seed);
                if constexpr (requires { host->record_events(); }) {
                    if (record_events) host->record_events();
                }
                return host;
            };
            return std::make_unique<environment::Batch>(factory, settings, simulations, agents_per_simulation,
                                                        threads);
        },
        nb::arg("settings"), nb::arg("simulations"), nb::arg("agents_per_simulation"), nb::arg("threads"),
        nb::arg("record_events") = false, "A batch of episodes over this host.");
}

}  // namespace quicgym::bindings
