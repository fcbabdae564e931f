// Datagrams and the bare endpoints for Python: for the tests, which feed them anything and drop what
// they like between them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/bindings/controllers.hpp"
#include "sim/bindings/modules.hpp"
#include "sim/bindings/simulation.hpp"
#include "sim/quic/endpoint.hpp"
#include "sim/quic/frames.hpp"
#include "sim/quic/media_encoder.hpp"
#include "sim/quic/receiver.hpp"
#include "sim/quic/sender.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

struct ListingHandler : quic::FrameHandler {
    nb::list frames;

    template <class... Fields>
    void add(const char* name, Fields... fields) {
        frames.append(nb::make_tuple(name, fields...));
    }
    void on_ping() { add("PING"); }
    void on_ack(const quic::AckFrame& ack) {
        nb::list ranges;
        for (std::size_t i = 0; i < ack.range_count; ++i) {
            ranges.append(nb::make_tuple(ack.ranges[i].smallest, ack.ranges[i].largest));
        }
        if (ack.has_ecn) {
            add("ACK", ack.delay, ranges, nb::make_tuple(ack.ecn.ect_0, ack.ecn.ect_1, ack.ecn.ce));
        } else {
            add("ACK", ack.delay, ranges);
        }
    }
    void on_crypto(std::uint64_t offset, std::uint64_t length) { add("CRYPTO", offset, length); }
    void on_stream(const quic::StreamFrame& stream) {
        add("STREAM", stream.stream_id, stream.offset, stream.length, stream.fin);
    }
    void on_max_data(std::uint64_t limit) { add("MAX_DATA", limit); }
    void on_max_stream_data(std::uint64_t stream_id, std::uint64_t limit) {
        add("MAX_STREAM_DATA", stream_id, limit);
    }
    void on_data_blocked(std::uint64_t limit) { add("DATA_BLOCKED", limit); }
    void on_stream_data_blocked(std::uint64_t stream_id, std::uint64_t limit) {
        add("STREAM_DATA_BLOCKED", stream_id, limit);
    }
    void on_connection_close(std::uint64_t error_code) { add("CONNECTION_CLOSE", error_code); }
    void on_handshake_done() { add("HANDSHAKE_DONE"); }
};

quic::DatagramView view_of(const nb::bytes& prefix, std::size_t size_bytes) {
    return {static_cast<const std::uint8_t*>(prefix.data()), prefix.size(),
            std::max(size_bytes, prefix.size())};
}

nb::dict read_datagram(const nb::bytes& prefix, std::size_t size_bytes) {
    nb::dict result;
    const quic::DatagramView datagram = view_of(prefix, size_bytes);
    quic::PacketHeader header;
    ListingHandler handler;
    quic::AckFrame ack;
    bool ack_eliciting = false;
    auto error = quic::ParseError::truncated;
    if (datagram.size_bytes >= quic::kTagBytes) {
        quic::Reader reader(datagram, datagram.size_bytes - quic::kTagBytes);
        error = quic::read_header(reader, header);
        if (error == quic::ParseError::none)
            error = quic::read_frames(reader, header.type, handler, ack, ack_eliciting);
    }
    result["error"] =
        error == quic::ParseError::none ? nb::object(nb::none()) : nb::object(nb::str(quic::describe(error)));
    result["type"] = header.type == quic::PacketType::initial ? "Initial" : "1-RTT";
    result["truncated_packet_number"] = header.truncated_packet_number;
    result["packet_number_bytes"] = header.packet_number_bytes;
    result["frames"] = handler.frames;
    result["ack_eliciting"] = ack_eliciting;
    return result;
}

// (prefix, size_bytes, ecn, sealed_number)
nb::tuple as_tuple(const quic::Datagram& datagram) {
    return nb::make_tuple(nb::bytes(datagram.prefix, datagram.prefix_bytes), datagram.size_bytes,
                          static_cast<int>(datagram.ecn), datagram.sealed_number);
}

quic::DatagramView view_of(const nb::tuple& datagram) {
    quic::DatagramView view = view_of(nb::cast<nb::bytes>(datagram[0]), nb::cast<std::size_t>(datagram[1]));
    view.ecn = static_cast<quic::Ecn>(nb::cast<unsigned>(datagram[2]) & 3U);
    view.sealed_number = nb::cast<std::uint32_t>(datagram[3]);
    return view;
}

// None, or what is wrong with the datagram.
nb::object error_of(const quic::Receipt& receipt) {
    if (receipt.error == quic::ParseError::none) return nb::none();
    return nb::str(quic::describe(receipt.error));
}

// A network in Python: next_arrival(), arrived(), on_received(now, error) and send(now, datagram).
class PythonHost {
public:
    explicit PythonHost(nb::object host) : host_(std::move(host)) {}

    Time next_arrival() const { return nb::cast<Time>(host_.attr("next_arrival")()); }
    quic::DatagramView arrived() {
        arrived_ = nb::cast<nb::tuple>(host_.attr("arrived")());
        return view_of(arrived_);
    }
    void on_received(Time now, const quic::Receipt& receipt) const {
        host_.attr("on_received")(now, error_of(receipt));
    }
    quic::Datagram& outgoing() { return outgoing_; }
    void send(Time now) const { host_.attr("send")(now, as_tuple(outgoing_)); }

private:
    nb::object host_;
    nb::tuple arrived_;
    quic::Datagram outgoing_;
};

template <quic::Endpoint E>
nb::class_<E> bind_endpoint(nb::module_& module, const char* name) {
    return nb::class_<E>(module, name)
        .def(
            "drive",
            [](E& endpoint, nb::object host, Time end) {
                PythonHost python_host(std::move(host));
                quic::drive(endpoint, python_host, end);
            },
            nb::arg("host"), nb::arg("end"))
        .def(
            "on_datagram",
            [](E& endpoint, Time now, const nb::tuple& datagram) {
                return error_of(endpoint.on_datagram(now, view_of(datagram)));
            },
            nb::arg("now"), nb::arg("datagram"))
        .def(
            "poll_datagram",
            [](E& endpoint, Time now) -> nb::object {
                quic::Datagram datagram;
                if (!endpoint.poll_datagram(now, datagram)) return nb::none();
                return as_tuple(datagram);
            },
            nb::arg("now"))
        .def_prop_ro("next_timeout", &E::next_timeout)
        .def(
            "statistics",
            [](const E& endpoint, Time now) {
                FlowStatistics statistics;
                endpoint.add_statistics(now, statistics);
                return as_dict(statistics);
            },
            nb::arg("now") = 0);
}

}  // namespace

void bind_wire(nb::module_& module) {
    module.def("read_datagram", &read_datagram, nb::arg("prefix"), nb::arg("size_bytes"),
               "Reads a datagram of size_bytes whose bytes past `prefix` are zero. 'error' says what is "
               "wrong, if anything.");
    module.def("decode_packet_number", &quic::decode_packet_number, nb::arg("expected"), nb::arg("truncated"),
               nb::arg("packet_number_bytes"), "RFC 9000 A.3.");
    bind_endpoint<quic::Sender>(module, "Sender")
        .def(nb::init<const Flow&, std::size_t, std::uint64_t, Time>(), nb::arg("flow"),
             nb::arg("flow_index"), nb::arg("seed"), nb::arg("start"))
        .def(
            "set_parameters",
            [](quic::Sender& sender, Time now, const nb::dict& values) {
                sender.set_parameters(now, to_parameter_values(values));
            },
            nb::arg("now"), nb::arg("values"))
        .def_prop_ro("closed", &quic::Sender::closed)
        .def_prop_ro("window_bytes",
                     [](const quic::Sender& sender) { return sender.controller().window_bytes(); })
        .def_prop_ro("snapshot", [](const quic::Sender& sender) { return sender.controller().snapshot(); })
        .def_prop_ro("in_flight_bytes",
                     [](const quic::Sender& sender) { return sender.sample(0).in_flight_bytes; })
        .def_prop_ro("smoothed_rtt",
                     [](const quic::Sender& sender) { return sender.sample(0).smoothed_rtt; });
    bind_endpoint<quic::Receiver>(module, "Receiver")
        .def(
            "__init__",
            [](quic::Receiver* receiver, const Flow& flow, Time start) {
                new (receiver) quic::Receiver(flow, start, quic::make_client(flow, 0, 0));
            },
            nb::arg("flow"), nb::arg("start") = 0);
    nb::class_<quic::MediaEncoder>(module, "MediaEncoder", "See sim/quic/media_encoder.hpp.")
        .def(nb::init<std::vector<std::uint64_t>>(), nb::arg("rates"))
        .def("encode", &quic::MediaEncoder::encode, nb::arg("rate"), nb::arg("unsent_bytes"));
    module.def("packet_number_bytes", &quic::packet_number_bytes, nb::arg("unacknowledged"), "RFC 9000 A.2.");
}

}  // namespace quicgym::bindings
