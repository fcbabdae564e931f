#include "controllers/external.hpp"

#include <algorithm>

#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"

namespace quicgym {

namespace {

const ParameterTable<ExternalParameters>& table() {
    using P = ExternalParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::window_bytes>("window_bytes", 0.0, kExternalLargestWindow, "bytes",
                                    "The window, two datagrams at least; 0: the initial window of RFC 9002",
                                    "whoever sets it; RFC 9002 7.2"),
        number<P, &P::pacing_rate>(
            "pacing_rate", 0.0, kExternalFastestRate, "bytes per second",
            "The pacing rate, 1000 bytes per second at least; 0: 1.25 * window / smoothed RTT",
            "whoever sets it; RFC 9002 7.7"),
    };
    return rows;
}

}  // namespace

External::External(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : Controller(max_datagram_bytes),
      parameters_(with_values(table(), "external", ExternalParameters(), values)) {
    apply();
}

void External::on_ack(const AckEvent& event) {
    min_rtt_ = event.min_rtt;
    pacing_.update_rtt(event.smoothed_rtt);
    apply();
}

void External::apply() {
    window_bytes_ = parameters_.window_bytes > 0.0 ? static_cast<std::uint64_t>(parameters_.window_bytes)
                                                   : initial_window_bytes(max_datagram_bytes_);
    window_bytes_ = std::max(window_bytes_, kMinimumWindowDatagrams * max_datagram_bytes_);
    pacing_rate_ = parameters_.pacing_rate > 0.0
                       ? std::max(parameters_.pacing_rate, kExternalSlowestRate)
                       : pacing_.rate(kPacingGain, static_cast<double>(window_bytes_));
}

void External::set_parameters(const ParameterValues& values) {
    parameters_ = with_values(table(), "external", parameters_, values);
    apply();
}

ParameterValues External::parameters() const {
    return to_values(table(), parameters_);
}

ControllerSnapshot External::snapshot() const {
    ControllerSnapshot result = snapshot_in(ControllerMode::congestion_avoidance);
    result.round_trip_estimate = min_rtt_;
    return result;
}

namespace {

ControllerSpecification external_specification() {
    return {"external", "A window and a pacing rate that are set from outside, as an agent does",
            "Aurora (ICML 2019) and Orca (SIGCOMM 2020) control a sender so",
            specifications(table(), ExternalParameters()), construct<External>};
}

const Registration registered(external_specification, {.place = 140, .steered = true});

}  // namespace

}  // namespace quicgym
