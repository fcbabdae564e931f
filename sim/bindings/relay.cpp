// sim/net/emulation.hpp and, on Linux, real/relay for Python: a scenario's network for packets from outside.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/bindings/modules.hpp"
#include "sim/bindings/network_capsule.hpp"
#include "sim/bindings/os_error.hpp"
#include "sim/net/emulation.hpp"
#ifdef __linux__
#include "real/relay/relay.hpp"
#endif

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

using net::EmulatedNetwork;

template <class Element>
using Column = nb::ndarray<const Element, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Structure>
nb::dict as_dict(const Structure& structure) {
    nb::dict result;
    Structure::for_each_field([&](const char* name, auto field) { result[name] = structure.*field; });
    return result;
}

nb::dict as_dict(const EmulatedNetwork::Totals& totals, const QueueSample& queue) {
    nb::dict result = as_dict(totals);
    result["queue_packets"] = queue.packets;
    result["queue_bytes"] = queue.bytes;
    return result;
}

// See quicgym.real.recording: of each path PASSED_DTYPE, of each hop QUEUE_DTYPE.
nb::tuple as_bytes(const net::Recording& recording) {
    const auto bytes_of = [](const auto& rows) {
        return nb::bytes(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof rows.front());
    };
    nb::list paths;
    nb::list hops;
    for (std::size_t path = 0; path < recording.path_count(); ++path)
        paths.append(bytes_of(recording.path(path)));
    for (std::size_t hop = 0; hop < recording.hop_count(); ++hop) hops.append(bytes_of(recording.queue(hop)));
    return nb::make_tuple(paths, hops);
}

// An EmulatedNetwork whose arguments are checked.
class CheckedNetwork {
public:
    CheckedNetwork(const Scenario& scenario, std::uint64_t seed) : network_(scenario, seed) {}

    Time send(std::uint64_t id, Time time, std::uint32_t path, DataDirection way, std::uint32_t wire_bytes,
              int ecn) {
        if (path >= network_.path_count()) {
            throw std::invalid_argument("path " + std::to_string(path) + " does not exist; there are " +
                                        std::to_string(network_.path_count()));
        }
        check_time(time);
        if (wire_bytes < kLinkBytes || wire_bytes > kMostWireBytes) {
            throw std::invalid_argument("a packet has " + std::to_string(kLinkBytes) + " to " +
                                        std::to_string(kMostWireBytes) + " bytes on the wire, not " +
                                        std::to_string(wire_bytes));
        }
        return network_.send({id, time, path, way, wire_bytes, path, static_cast<quic::Ecn>(ecn & 3)});
    }

    nb::list advance(Time end) {
        nb::list outcomes;
        for (const EmulatedNetwork::Outcome& outcome : network_.advance(end)) {
            outcomes.append(nb::make_tuple(outcome.id, outcome.time, outcome.fate, outcome.path, outcome.way,
                                           static_cast<int>(outcome.ecn)));
        }
        return outcomes;
    }

    EmulatedNetwork& network() { return network_; }
    nb::dict totals(DataDirection way, Time now) const {
        return as_dict(network_.totals(way, now), network_.queue(way, now));
    }

    static void check_time(Time time) {
        if (time >= 0 && time <= kMostTime) return;
        throw std::invalid_argument("a packet is sent at 0 ns at the earliest and at " +
                                    std::to_string(kMostTime) + " ns at the latest, not at " +
                                    std::to_string(time));
    }

private:
    static constexpr std::uint32_t kMostWireBytes = 65535 + 2;
    static constexpr Time kMostTime = 1'000'000 * kSecond;  // the longest that a scenario lasts

    EmulatedNetwork network_;
};

// Feeds packets as a relay does: the network advances as far as it is known what arrives.
nb::tuple replay(const Scenario& scenario, std::uint64_t seed, const Column<std::int64_t>& times,
                 const Column<std::uint32_t>& wire_bytes, const Column<std::uint32_t>& paths,
                 const Column<bool>& backward, const Column<std::uint8_t>& ecn) {
    const std::size_t count = times.size();
    for (const std::size_t size : {wire_bytes.size(), paths.size(), backward.size(), ecn.size()}) {
        if (size != count) throw std::invalid_argument("all columns must have the same length");
    }
    auto arrivals = std::make_unique<std::vector<std::int64_t>>(count, kNever);
    auto fates = std::make_unique<std::vector<std::uint8_t>>(count);
    {
        CheckedNetwork checked(scenario, seed);
        const nb::gil_scoped_release released;
        const auto advance = [&](Time end) {
            for (const EmulatedNetwork::Outcome& outcome : checked.network().advance(end)) {
                (*fates)[outcome.id] = static_cast<std::uint8_t>(outcome.fate);
                if (outcome.fate == net::Fate::delivered) (*arrivals)[outcome.id] = outcome.time;
            }
        };
        for (std::size_t i = 0; i < count; ++i) {
            const Time time = times.data()[i];
            if (i > 0 && time < times.data()[i - 1])
                throw std::invalid_argument("times must not go backwards, as at index " + std::to_string(i));
            CheckedNetwork::check_time(time);
            advance(time + checked.network().lookahead());
            checked.send(i, time, paths.data()[i],
                         backward.data()[i] ? DataDirection::backward : DataDirection::forward,
                         wire_bytes.data()[i], ecn.data()[i]);
        }
        advance(kNever);
    }
    const auto give = [count](auto values) {
        using Values = typename decltype(values)::element_type;
        auto* const data = values->data();
        nb::capsule owner(values.release(), [](void* p) noexcept { delete static_cast<Values*>(p); });
        return nb::ndarray<nb::numpy, typename Values::value_type>(data, {count}, owner);
    };
    return nb::make_tuple(give(std::move(arrivals)), give(std::move(fates)));
}

#ifdef __linux__

using OptionalAddress = std::optional<std::pair<std::string, std::uint16_t>>;

std::optional<relay::Address> make_address(const OptionalAddress& pair) {
    if (!pair) return std::nullopt;
    return relay::Address{pair->first, pair->second};
}

void bind_real_time(nb::module_& module) {
    nb::class_<relay::Relay>(module, "Relay", "See quicgym.real.relay. Times in ns.")
        .def(nb::init<const Scenario&, std::uint64_t>(), nb::arg("scenario"), nb::arg("seed"))
        .def_prop_ro("path_count", &relay::Relay::path_count)
        .def(
            "add_udp_ports",
            [](relay::Relay& self, std::size_t path, const std::string& host, const OptionalAddress& sender,
               const OptionalAddress& receiver) {
                return raising_os_error([&] {
                    const relay::Address local{host, 0};
                    relay::Port forward = relay::Port::udp(local, make_address(sender));
                    relay::Port backward = relay::Port::udp(local, make_address(receiver));
                    const auto [to_receiver, to_sender] = std::pair(forward.local(), backward.local());
                    self.add_port(path, DataDirection::forward, std::move(forward));
                    self.add_port(path, DataDirection::backward, std::move(backward));
                    return std::pair(std::pair(to_receiver.host, to_receiver.port),
                                     std::pair(to_sender.host, to_sender.port));
                });
            },
            nb::arg("path"), nb::arg("host"), nb::arg("sender").none(), nb::arg("receiver").none())
        .def(
            "add_packet_port",
            [](relay::Relay& self, std::size_t path, DataDirection way, int socket, int interface,
               const std::array<std::uint8_t, 6>& host) {
                raising_os_error(
                    [&] { self.add_port(path, way, relay::Port::packets(socket, interface, host)); });
            },
            nb::arg("path"), nb::arg("way"), nb::arg("socket"), nb::arg("interface"), nb::arg("host"),
            "Takes the socket over.")
        .def("start", &relay::Relay::start, nb::call_guard<nb::gil_scoped_release>())
        .def("stop",
             [](relay::Relay& self) {
                 raising_os_error([&] {
                     const nb::gil_scoped_release released;
                     self.stop();
                 });
             })
        .def_prop_ro("started_at", &relay::Relay::started_at)
        .def("record", &relay::Relay::record, nb::arg("interval"), nb::arg("duration"))
        .def("recording", [](relay::Relay& self) { return as_bytes(self.recording()); })
        .def("report", [](relay::Relay& self) {
            relay::Report report;
            {
                const nb::gil_scoped_release released;
                report = self.report();
            }
            nb::dict result = as_dict(report);
            result["forward"] = as_dict(report.totals[0], report.queues[0]);
            result["backward"] = as_dict(report.totals[1], report.queues[1]);
            return result;
        });
}

#endif

}  // namespace

void bind_relay(nb::module_& module) {
    nb::enum_<net::Fate> fate(module, "Fate");
    for_each_value(net::Fate{}, [&](const char* name, net::Fate value) { fate.value(name, value); });
    nb::class_<CheckedNetwork>(module, "EmulatedNetwork",
                               "The network of a scenario for packets that come from outside. Times in ns.")
        .def(nb::init<const Scenario&, std::uint64_t>(), nb::arg("scenario"), nb::arg("seed"))
        .def_prop_ro("path_count", [](CheckedNetwork& self) { return self.network().path_count(); })
        .def_prop_ro("lookahead", [](CheckedNetwork& self) { return self.network().lookahead(); })
        .def_prop_ro("next_event", [](CheckedNetwork& self) { return self.network().next_event(); })
        .def_prop_ro(
            "capsule",
            [](const nb::object& self) {
                return NetworkCapsule<CheckedNetwork>::make(self, nb::cast<CheckedNetwork&>(self));
            },
            "This network for other languages, see real/embedding/quicgym/network.h.")
        .def("send", &CheckedNetwork::send, nb::arg("id"), nb::arg("time"), nb::arg("path"), nb::arg("way"),
             nb::arg("wire_bytes"), nb::arg("ecn") = 0,
             "Returns by how much the packet was moved, because it should have reached a queue before.")
        .def("advance", &CheckedNetwork::advance, nb::arg("end"),
             "Returns (id, time, fate, path, way, ecn) of every packet whose fate is known by then.")
        .def("totals", &CheckedNetwork::totals, nb::arg("way"), nb::arg("now"))
        .def(
            "record",
            [](CheckedNetwork& self, Time interval, Time duration) {
                self.network().record(interval, duration);
            },
            nb::arg("interval"), nb::arg("duration"))
        .def("recording", [](CheckedNetwork& self) { return as_bytes(self.network().recording()); });
    module.def("flow_start", &flow_start, nb::arg("scenario"), nb::arg("flow"), nb::arg("seed"),
               "When a flow starts, with its jitter, in ns.");
    module.def("replay", &replay, nb::arg("scenario"), nb::arg("seed"), nb::arg("times"),
               nb::arg("wire_bytes"), nb::arg("paths"), nb::arg("backward"), nb::arg("ecn"),
               "See quicgym.real.replay.");
#ifdef __linux__
    bind_real_time(module);
#endif
}

}  // namespace quicgym::bindings
