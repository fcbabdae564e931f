// sim/scenario.hpp for Python, field by field.
#include "sim/scenario.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "sim/bindings/modules.hpp"
#include "sim/bindings/plugin_controller.hpp"
#include "sim/bindings/python_controller.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

void bind_scenario(nb::module_& module) {
    nb::enum_<QueueUnit>(module, "QueueUnit")
        .value("packets", QueueUnit::packets)
        .value("bytes", QueueUnit::bytes);
    nb::enum_<LossKind>(module, "LossKind")
        .value("none", LossKind::none)
        .value("bernoulli", LossKind::bernoulli)
        .value("gilbert_elliott", LossKind::gilbert_elliott);
    nb::enum_<ApplicationKind>(module, "ApplicationKind")
        .value("bulk", ApplicationKind::bulk)
        .value("transfer", ApplicationKind::transfer)
        .value("constant_rate", ApplicationKind::constant_rate)
        .value("bursts", ApplicationKind::bursts)
        .value("on_off", ApplicationKind::on_off);
    nb::enum_<Transport>(module, "Transport").value("quic", Transport::quic).value("tcp", Transport::tcp);

    nb::class_<LossModel>(module, "LossModel")
        .def(nb::init<>())
        .def_rw("kind", &LossModel::kind)
        .def_rw("probability", &LossModel::probability)
        .def_rw("good_to_bad", &LossModel::good_to_bad)
        .def_rw("bad_to_good", &LossModel::bad_to_good)
        .def_rw("loss_in_good", &LossModel::loss_in_good)
        .def_rw("loss_in_bad", &LossModel::loss_in_bad);
    nb::class_<RateStep>(module, "RateStep")
        .def(nb::init<>())
        .def_rw("at", &RateStep::at)
        .def_rw("rate_bits_per_second", &RateStep::rate_bits_per_second);
    nb::class_<Link>(module, "Link")
        .def(nb::init<>())
        .def_rw("rate_bits_per_second", &Link::rate_bits_per_second)
        .def_rw("delay", &Link::delay)
        .def_rw("queue_limit", &Link::queue_limit)
        .def_rw("queue_unit", &Link::queue_unit)
        .def_rw("queue_discipline", &Link::queue_discipline)
        .def_rw("ecn_marking", &Link::ecn_marking)
        .def_rw("loss", &Link::loss)
        .def_rw("rate_schedule", &Link::rate_schedule)
        .def_rw("delivery_opportunities_ms", &Link::delivery_opportunities_ms);
    nb::class_<Application>(module, "Application")
        .def(nb::init<>())
        .def_rw("kind", &Application::kind)
        .def_rw("size_bytes", &Application::size_bytes)
        .def_rw("rate_bits_per_second", &Application::rate_bits_per_second)
        .def_rw("burst_rate_bits_per_second", &Application::burst_rate_bits_per_second)
        .def_rw("burst_duration", &Application::burst_duration)
        .def_rw("burst_period", &Application::burst_period)
        .def_rw("burst_count", &Application::burst_count)
        .def_rw("on_duration", &Application::on_duration)
        .def_rw("off_duration", &Application::off_duration);
    nb::class_<Flow>(module, "Flow")
        .def(nb::init<>())
        .def_rw("name", &Flow::name)
        .def_rw("transport", &Flow::transport)
        .def_rw("controller", &Flow::controller)
        .def_rw("parameters", &Flow::parameters)
        .def(
            "set_python_controller",
            [](Flow& flow, const nb::object& info) {
                flow.controller_factory = python_controller_factory(info);
            },
            nb::arg("info"), "Takes the controller from ControllerInfo.python_class, not from the catalogue.")
        .def(
            "set_plugin_controller",
            [](Flow& flow, const nb::capsule& capsule) {
                flow.controller_factory = plugin_controller_factory(capsule);
            },
            nb::arg("capsule"), "Takes the controller from ControllerInfo.plugin, not from the catalogue.")
        .def_rw("application", &Flow::application)
        .def_rw("start", &Flow::start)
        .def_rw("start_jitter", &Flow::start_jitter)
        .def_rw("stop", &Flow::stop)
        .def_rw("access_rate_bits_per_second", &Flow::access_rate_bits_per_second)
        .def_rw("access_delay", &Flow::access_delay)
        .def_rw("extra_delay", &Flow::extra_delay)
        .def_rw("max_datagram_bytes", &Flow::max_datagram_bytes)
        .def_rw("flow_control_window_bytes", &Flow::flow_control_window_bytes)
        .def_rw("send_buffer_bytes", &Flow::send_buffer_bytes)
        .def_rw("ecn", &Flow::ecn);
    nb::class_<Wifi>(module, "Wifi")
        .def(nb::init<>())
        .def_rw("channel_width_mhz", &Wifi::channel_width_mhz)
        .def_rw("mcs", &Wifi::mcs)
        .def_rw("short_guard_interval", &Wifi::short_guard_interval)
        .def_rw("max_ampdu_bytes", &Wifi::max_ampdu_bytes)
        .def_rw("distance_metres", &Wifi::distance_metres)
        .def_rw("path_loss_exponent", &Wifi::path_loss_exponent)
        .def_rw("queue_packets", &Wifi::queue_packets)
        .def_rw("queue_max_delay", &Wifi::queue_max_delay)
        .def_rw("wired", &Wifi::wired);
    nb::class_<Scenario>(module, "Scenario")
        .def(nb::init<>())
        .def_rw("bottleneck", &Scenario::bottleneck)
        .def_rw("reverse", &Scenario::reverse)
        .def_rw("wifi", &Scenario::wifi)
        .def_rw("flows", &Scenario::flows)
        .def_rw("trace_interval", &Scenario::trace_interval)
        .def_rw("record_deliveries", &Scenario::record_deliveries)
        .def_rw("pcap_prefix", &Scenario::pcap_prefix)
        .def_rw("flow_monitor_path", &Scenario::flow_monitor_path);
}

}  // namespace quicgym::bindings
