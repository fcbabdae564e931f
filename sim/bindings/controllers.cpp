// Controllers and their events for Python: tests, tools, and the catalogue.
#include "sim/bindings/controllers.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "controllers/catalogue.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace quicgym {

namespace {

// A C++ host guarantees these conditions, so they are checked for callers from Python only.
void on_ack(Controller& controller, const AckEvent& event) {
    if (event.random == nullptr) throw std::invalid_argument("AckEvent.random is not set; give it a Random");
    controller.on_ack(event);
}

nb::dict describe_parameter(const ParameterSpecification& parameter) {
    nb::dict result;
    result["name"] = parameter.name;
    result["default"] = parameter.default_value;
    result["minimum"] = parameter.minimum;
    result["maximum"] = parameter.maximum;
    result["is_list"] = parameter.is_list;
    result["unit"] = parameter.unit;
    result["description"] = parameter.description;
    result["source"] = parameter.source;
    result["scale"] = name_of(parameter.scale);
    result["choices"] = nb::tuple(nb::cast(parameter.choices));
    return result;
}

nb::list describe_catalogue() {
    nb::list result;
    for (const auto& [specification, listing] : catalogue()) {
        nb::dict entry = describe(specification);
        entry["steered"] = listing.steered;
        entry["preset_of"] = listing.preset_of;
        result.append(entry);
    }
    return result;
}

void bind_events(nb::module_& m) {
    nb::enum_<RandomPurpose>(m, "RandomPurpose", "What a stream of random numbers is for.")
        .value("flow_start", RandomPurpose::flow_start)
        .value("controller", RandomPurpose::controller)
        .value("forward_loss", RandomPurpose::forward_loss)
        .value("reverse_loss", RandomPurpose::reverse_loss)
        .value("forward_jitter", RandomPurpose::forward_jitter)
        .value("reverse_jitter", RandomPurpose::reverse_jitter);

    nb::class_<Random>(m, "Random", "A stream of random numbers: xoshiro256++ spawned from a seed.")
        .def(nb::init<std::uint64_t, RandomPurpose, std::uint64_t>(), "seed"_a,
             "purpose"_a = RandomPurpose::controller, "index"_a = 0)
        .def("next", &Random::next, "The next 64 random bits.")
        .def("uniform", &Random::uniform, "Uniform in [0, 1).")
        .def("below", &Random::below, "bound"_a, "Uniform in 0 to bound - 1.");

    nb::class_<RateSample>(m, "RateSample", "A delivery-rate sample: bytes per second, interval in ns.")
        .def(nb::init<>())
        .def_rw("delivery_rate", &RateSample::delivery_rate, "Bytes per second; 0: there is no valid sample.")
        .def_rw("interval", &RateSample::interval,
                "Over which the rate is measured, the longer of send and ACK interval, in ns.")
        .def_rw("app_limited", &RateSample::app_limited,
                "Whether the application, not the network, set the rate.")
        .def_rw("delivered_bytes", &RateSample::delivered_bytes,
                "Acknowledged since the packet was sent, in bytes.")
        .def_rw("lost_bytes", &RateSample::lost_bytes, "Declared lost since the packet was sent, in bytes.")
        .def_rw("in_flight_at_send_bytes", &RateSample::in_flight_at_send_bytes,
                "In flight when the packet was sent, itself included, in bytes.");

    nb::class_<AckEvent>(m, "AckEvent", "What is known after one ACK frame: times in ns, sizes in bytes.")
        .def(nb::init<>())
        .def_rw("now", &AckEvent::now, "The time, in ns from the start of the simulation.")
        .def_rw(
            "rtt", &AckEvent::rtt,
            "The latest RTT sample less the peer's ACK delay (RFC 9002 5.3), in ns; 0: this ACK has none.")
        .def_rw(
            "measured_rtt", &AckEvent::measured_rtt,
            "The same sample with the ACK delay: now less the time of sending, in ns; 0: this ACK has none.")
        .def_rw("smoothed_rtt", &AckEvent::smoothed_rtt, "The smoothed RTT (RFC 9002 5.3), in ns.")
        .def_rw("min_rtt", &AckEvent::min_rtt,
                "The lowest RTT since the start or the last persistent congestion (RFC 9002 5.2), in ns.")
        .def_rw("largest_acked_sent_time", &AckEvent::largest_acked_sent_time,
                "When the largest newly acknowledged packet was sent, in ns.")
        .def_rw("delivered_bytes", &AckEvent::delivered_bytes,
                "Acknowledged on the connection so far, in bytes.")
        .def_rw("newly_acked_bytes", &AckEvent::newly_acked_bytes, "Acknowledged by this ACK, in bytes.")
        .def_rw("newly_acked_packets", &AckEvent::newly_acked_packets,
                "Acknowledged by this ACK, in packets.")
        .def_rw("newly_lost_bytes", &AckEvent::newly_lost_bytes,
                "Declared lost by this ACK, in bytes; what the loss timer finds is in LossEvent alone.")
        .def_rw("prior_in_flight_bytes", &AckEvent::prior_in_flight_bytes,
                "In flight before this ACK, in bytes.")
        .def_rw("in_flight_bytes", &AckEvent::in_flight_bytes, "In flight after this ACK, in bytes.")
        .def_rw("blocked_events", &AckEvent::blocked_events,
                "How often so far the send buffer was full or DATA_BLOCKED was sent (RFC 9000 4.1).")
        .def_rw("unsent_bytes", &AckEvent::unsent_bytes,
                "Written by the application and not sent yet, in bytes.")
        .def_rw(
            "sample", &AckEvent::sample,
            "The delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation-02) of this ACK, a RateSample.")
        .def_rw("app_limited", &AckEvent::app_limited,
                "Whether the application or the receiver's flow control, not the window, has limited what is "
                "acknowledged (RFC 9002 7.8).")
        .def_rw("no_unsent_data", &AckEvent::no_unsent_data,
                "Whether the application alone has (draft-ietf-ccwg-bbr-06, C.app_limited).")
        .def_rw("round_start", &AckEvent::round_start,
                "Whether this ACK begins a new round trip, counted by packets.")
        .def_prop_rw(
            "random", [](AckEvent& event) { return event.random; },
            [](AckEvent& event, Random* random) { event.random = random; },
            nb::for_getter(nb::rv_policy::reference), nb::for_setter(nb::keep_alive<1, 2>()),
            nb::for_setter(nb::arg("value").none()),
            "The random numbers of this flow, from the seed of the simulation, a Random.");

    nb::class_<LossEvent>(m, "LossEvent", "Packets declared lost: times in ns, sizes in bytes.")
        .def(nb::init<>())
        .def_rw("now", &LossEvent::now, "The time, in ns from the start of the simulation.")
        .def_rw("largest_lost_sent_time", &LossEvent::largest_lost_sent_time,
                "When the largest lost packet was sent, in ns.")
        .def_rw("lost_bytes", &LossEvent::lost_bytes, "Declared lost, in bytes.")
        .def_rw("lost_packets", &LossEvent::lost_packets, "Declared lost, in packets.")
        .def_rw("in_flight_bytes", &LossEvent::in_flight_bytes, "In flight without what was lost, in bytes.");

    nb::class_<LostPacket>(m, "LostPacket", "One packet of a LossEvent: times in ns, sizes in bytes.")
        .def(nb::init<>())
        .def_rw("now", &LostPacket::now, "The time, in ns from the start of the simulation.")
        .def_rw("sent_time", &LostPacket::sent_time, "When the packet was sent, in ns.")
        .def_rw("packet_number", &LostPacket::packet_number, "The packet's number.")
        .def_rw("size_bytes", &LostPacket::size_bytes, "The packet's size, in bytes.")
        .def_rw("in_flight_at_send_bytes", &LostPacket::in_flight_at_send_bytes,
                "In flight when the packet was sent, itself included, in bytes.")
        .def_rw("lost_since_sent_bytes", &LostPacket::lost_since_sent_bytes,
                "Declared lost since the packet was sent, itself included, in bytes.")
        .def_rw("delivered_bytes", &LostPacket::delivered_bytes,
                "Acknowledged on the connection so far, in bytes.")
        .def_rw("app_limited", &LostPacket::app_limited,
                "Whether the packet's rate sample would have been limited by the application.");

    nb::class_<EcnEvent>(m, "EcnEvent", "An increase of the ECN-CE count that the peer reports.")
        .def(nb::init<>())
        .def_rw("now", &EcnEvent::now, "The time, in ns from the start of the simulation.")
        .def_rw("largest_acked_sent_time", &EcnEvent::largest_acked_sent_time,
                "When the largest newly acknowledged packet was sent, in ns.")
        .def_rw("newly_marked_packets", &EcnEvent::newly_marked_packets,
                "The increase of the peer's ECN-CE count, in packets.")
        .def_rw("in_flight_bytes", &EcnEvent::in_flight_bytes, "In flight, in bytes.");
}

void bind_controller(nb::module_& m) {
    nb::enum_<ControllerMode>(m, "ControllerMode", "The phase that a controller is in.", nb::is_arithmetic())
        .value("slow_start", ControllerMode::slow_start)
        .value("congestion_avoidance", ControllerMode::congestion_avoidance)
        .value("recovery", ControllerMode::recovery)
        .value("startup", ControllerMode::startup)
        .value("drain", ControllerMode::drain)
        .value("probe_bw", ControllerMode::probe_bw)
        .value("probe_rtt", ControllerMode::probe_rtt);

    nb::enum_<ProbeBwPhase>(m, "ProbeBwPhase", "BBR version 3's part of a ProbeBW cycle.")
        .value("none", ProbeBwPhase::none)
        .value("down", ProbeBwPhase::down)
        .value("cruise", ProbeBwPhase::cruise)
        .value("refill", ProbeBwPhase::refill)
        .value("up", ProbeBwPhase::up);

    nb::class_<ControllerSnapshot>(m, "ControllerSnapshot", "What an observer may read between events.")
        .def_ro("window_bytes", &ControllerSnapshot::window_bytes)
        .def_ro("pacing_rate", &ControllerSnapshot::pacing_rate)
        .def_ro("mode", &ControllerSnapshot::mode)
        .def_ro("bandwidth_estimate", &ControllerSnapshot::bandwidth_estimate)
        .def_ro("round_trip_estimate", &ControllerSnapshot::round_trip_estimate)
        .def_ro("queue_estimate_packets", &ControllerSnapshot::queue_estimate_packets)
        .def_ro("probe_bw_phase", &ControllerSnapshot::probe_bw_phase)
        .def_ro("inflight_longterm_bytes", &ControllerSnapshot::inflight_longterm_bytes)
        .def_ro("inflight_shortterm_bytes", &ControllerSnapshot::inflight_shortterm_bytes);

    nb::class_<Controller>(m, "Controller", "A congestion controller; make_controller() makes one.")
        .def("on_packet_sent", &Controller::on_packet_sent, "now"_a, "bytes"_a, "in_flight_bytes"_a)
        .def("on_ack", &on_ack, "event"_a)
        .def("on_packet_lost", &Controller::on_packet_lost, "packet"_a)
        .def("on_loss", &Controller::on_loss, "event"_a)
        .def("on_persistent_congestion", &Controller::on_persistent_congestion, "now"_a)
        .def("on_spurious_loss", &Controller::on_spurious_loss, "now"_a)
        .def("on_ecn", &Controller::on_ecn, "event"_a)
        .def(
            "set_parameters",
            [](Controller& controller, const nb::dict& values) {
                controller.set_parameters(to_parameter_values(values));
            },
            "values"_a, "Replaces the named parameters and keeps the state.")
        .def_prop_ro("parameters", &Controller::parameters, "Every parameter as a list of numbers.")
        .def_prop_ro("snapshot", &Controller::snapshot)
        .def_prop_ro("window_bytes", &Controller::window_bytes)
        .def_prop_ro("pacing_rate", &Controller::pacing_rate, "Bytes per second.")
        .def_prop_ro("max_datagram_bytes", &Controller::max_datagram_bytes);
}

}  // namespace

nb::dict describe(const ControllerSpecification& specification) {
    nb::list parameters;
    for (const auto& parameter : specification.parameters) parameters.append(describe_parameter(parameter));
    nb::dict result;
    result["name"] = specification.name;
    result["description"] = specification.description;
    result["source"] = specification.source;
    result["parameters"] = parameters;
    return result;
}

ParameterValues to_parameter_values(const nb::dict& values) {
    ParameterValues result;
    for (const auto& [key, value] : values) {
        std::string name;
        std::vector<double> numbers;
        double number = 0.0;
        if (!nb::try_cast(key, name)) throw std::invalid_argument("the name of a parameter must be a string");
        if (nb::try_cast(value, number)) {
            numbers = {number};
        } else if (nb::isinstance<nb::str>(value) || !nb::try_cast(value, numbers)) {
            throw std::invalid_argument("parameter '" + name + "' must be a number or a list of numbers");
        }
        result[name] = std::move(numbers);
    }
    return result;
}

void bind_controllers(nb::module_& m) {
    bind_events(m);
    bind_controller(m);
    m.def(
        "make_controller",
        [](const std::string& name, const nb::dict& parameters, std::uint64_t max_datagram_bytes) {
            return make_controller(name, to_parameter_values(parameters), max_datagram_bytes);
        },
        "name"_a, "parameters"_a = nb::dict(), "max_datagram_bytes"_a = kUsualDatagramBytes,
        "A controller of the catalogue, with its defaults overridden by `parameters`.");
    m.def("baselines", &baselines,
          "The controllers that decide by themselves, in the order in which evaluations show them.");
    m.def(
        "wants_l4s",
        [](const std::string& name, const nb::dict& parameters) {
            return make_controller(name, to_parameter_values(parameters), kUsualDatagramBytes)->wants_l4s();
        },
        "name"_a, "parameters"_a, "Whether the packets of a controller of the catalogue carry ECT(1).");
    m.def("catalogue", &describe_catalogue, "Every controller and its parameters, as a list of dicts.");
    m.def(
        "complete_parameters",
        [](const std::string& name, const nb::dict& values) {
            return complete_parameters(find_controller(name), to_parameter_values(values));
        },
        "name"_a, "values"_a, "The controller's defaults overridden by `values`, all of them checked.");
}

}  // namespace quicgym
