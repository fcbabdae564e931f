// The list of queue disciplines for Python, and one by itself for the tests, which compare its decisions with
// an RFC's pseudocode.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "sim/bindings/modules.hpp"
#include "sim/net/queues/discipline.hpp"
#include "sim/queue_disciplines.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

class BareQueue {
public:
    BareQueue(const Link& link, std::uint64_t largest_packet_bytes, std::uint64_t seed)
        : discipline_(make(link, largest_packet_bytes, seed)) {}

    nb::list enqueue(Time now, std::uint64_t number, std::uint32_t bytes, int ecn, std::uint32_t flow) {
        discipline_->enqueue({now, number, flow, bytes, static_cast<quic::Ecn>(ecn & 3)});
        return take_dropped();
    }

    nb::tuple dequeue(Time now) {
        net::QueuedPacket packet{};
        const bool found = discipline_->dequeue(now, packet);
        const nb::list dropped = take_dropped();
        if (!found) return nb::make_tuple(nb::none(), nb::none(), dropped);
        return nb::make_tuple(packet.position, static_cast<int>(packet.ecn), dropped);
    }

    std::uint64_t packets() const { return discipline_->packets(); }
    std::uint64_t bytes() const { return discipline_->bytes(); }

private:
    static std::unique_ptr<net::QueueDiscipline> make(const Link& link, std::uint64_t largest_packet_bytes,
                                                      std::uint64_t seed) {
        check_queue(link, "link");
        return net::make_discipline(
            {link, largest_packet_bytes, seed, queue_stream(DataDirection::forward, 0)});
    }

    nb::list take_dropped() {
        nb::list numbers;
        for (const net::QueuedPacket& packet : discipline_->dropped()) numbers.append(packet.position);
        discipline_->dropped().clear();
        return numbers;
    }

    std::unique_ptr<net::QueueDiscipline> discipline_;
};

}  // namespace

void bind_queues(nb::module_& module) {
    nb::class_<Discipline>(module, "DisciplineInfo", "What a queue discipline can do.")
        .def_ro("name", &Discipline::name)
        .def_ro("can_mark", &Discipline::can_mark)
        .def_ro("always_marks", &Discipline::always_marks)
        .def_ro("counts_bytes", &Discipline::counts_bytes)
        .def_ro("has_ce_threshold", &Discipline::has_ce_threshold)
        .def_prop_ro("in_ns3", &Discipline::in_ns3);
    module.def("queue_disciplines", &disciplines, nb::rv_policy::copy,
               "Every queue discipline, those that cannot mark first.");
    nb::class_<BareQueue>(module, "QueueDiscipline",
                          "A link's queue discipline by itself. Times in ns, packet numbers of the caller.")
        .def(nb::init<const Link&, std::uint64_t, std::uint64_t>(), nb::arg("link"),
             nb::arg("largest_packet_bytes") = 1500, nb::arg("seed") = 0)
        .def("enqueue", &BareQueue::enqueue, nb::arg("now"), nb::arg("number"), nb::arg("ip_bytes"),
             nb::arg("ecn") = 0, nb::arg("flow") = 0, "Returns the numbers of dropped packets.")
        .def("dequeue", &BareQueue::dequeue, nb::arg("now"),
             "Returns number and ECN codepoint of the next packet, or None twice, and the numbers of "
             "dropped packets.")
        .def_prop_ro("packets", &BareQueue::packets)
        .def_prop_ro("bytes", &BareQueue::bytes);
}

}  // namespace quicgym::bindings
