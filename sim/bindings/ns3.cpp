// quicgym_ns3._ns3: the ns-3 host. quicgym._core binds the types of its arguments and results, and its bases.
#include <nanobind/nanobind.h>

#include <string>

#include "sim/bindings/environment.hpp"
#include "sim/bindings/interface.hpp"
#include "sim/bindings/simulation.hpp"
#include "sim/ns3/host.hpp"

namespace nb = nanobind;

namespace {

// Objects of another quicgym's classes would be read as ours.
void check_same_build(const nb::module_& core) {
    const auto theirs = nb::cast<std::string>(core.attr("interface"));
    if (theirs != quicgym::bindings::kInterface) {
        throw nb::import_error(("quicgym-ns3 was built for another build of quicgym: it fits [" +
                                std::string(quicgym::bindings::kInterface) + "], and installed is [" +
                                theirs + "]; install quicgym and quicgym-ns3 from the same sources")
                                   .c_str());
    }
}

}  // namespace

NB_MODULE(_ns3, module) {
    using namespace quicgym;
    check_same_build(nb::module_::import_("quicgym._core"));
    module.attr("ns3_version") = QUICGYM_NS3_VERSION;
    bindings::bind_host<ns3_host::Ns3Simulation>(module, "Ns3Simulation")
        .def(
            "close",
            [](ns3_host::Ns3Simulation& host) {
                const OneThread::Alone use(host.one_thread());
                host.close();
            },
            "Writes what is left of output files and lets the next ns-3 simulation of this process begin.");
    bindings::bind_batch_over<ns3_host::Ns3Simulation>(module, "ns3_batch");
    module.def("transmission_time_ns", &ns3_host::ns3_transmission_time, nb::arg("bytes"),
               nb::arg("bits_per_second"), "Nanoseconds that so many bytes take by ns-3's DataRate.");
}
