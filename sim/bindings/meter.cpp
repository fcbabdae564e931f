// sim/environment/meter.hpp for Python, over simulations and over runs that have happened elsewhere.
#include "sim/environment/meter.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "sim/bindings/arrays.hpp"
#include "sim/bindings/modules.hpp"
#include "sim/bindings/simulation.hpp"
#include "sim/environment/recorded_run.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

using namespace environment;

constexpr std::size_t kColumns = kRunColumns + 1;  // the reward is last

template <class Row>
std::vector<std::vector<Row>> to_rows(const std::vector<nb::bytes>& given) {
    std::vector<std::vector<Row>> all;
    for (const nb::bytes& bytes : given) {
        if (bytes.size() % sizeof(Row) != 0) throw std::invalid_argument("rows have another size");
        std::vector<Row>& rows = all.emplace_back(bytes.size() / sizeof(Row));
        std::memcpy(rows.data(), bytes.c_str(), bytes.size());
    }
    return all;
}

// A meter, and a row of the run's columns and the reward for each interval.
class MeteredRun {
public:
    MeteredRun(Watched& run, const Scenario& scenario, const RewardSettings& reward, Time interval, Time end,
               const std::vector<Time>& marks, Time begin)
        : run_(run), reward_(reward), interval_(interval), meter_([&] {
              if (interval <= 0) throw std::invalid_argument("the interval must be above 0 ns");
              if (scenario.flows.size() != run.flow_count()) {
                  throw std::invalid_argument("the run and the scenario differ in their flows");
              }
              const OneThread::Alone use(run.one_thread());
              return Meter(run, scenario, {.begin = begin, .end = end, .marks = marks, .records = true});
          }()) {}

    void run_until(Time until) {
        const OneThread::Alone use(run_.one_thread());
        while (run_.now() < until) {
            meter_.run_until(run_, interval_ < until - run_.now() ? run_.now() + interval_ : until);
            const Reading reading(meter_, run_);
            std::array<double, kColumns> row{};
            *write_run_columns(reading, row.data()) = reward(reward_, reading.total);
            rows_.insert(rows_.end(), row.begin(), row.end());
        }
    }

    auto rows() const {
        const OneThread::Use use(run_.one_thread());
        return to_array(rows_, {rows_.size() / kColumns, kColumns});
    }
    auto times() const {
        const OneThread::Use use(run_.one_thread());
        return to_array(meter_.times(), {meter_.times().size()});
    }
    auto received() const {
        const OneThread::Use use(run_.one_thread());
        return received_of(meter_, run_.flow_count());
    }
    FlowTotals totals(std::size_t mark, std::size_t flow) const {
        const OneThread::Use use(run_.one_thread());
        return meter_.totals(mark, flow);
    }
    nb::dict short_flow_totals(std::size_t mark, std::size_t entry) const {
        const OneThread::Use use(run_.one_thread());
        return as_dict(meter_.short_flow_totals(mark, entry));
    }
    double queue_occupancy_seconds(std::size_t mark) const {
        const OneThread::Use use(run_.one_thread());
        return meter_.queue_occupancy_seconds(mark);
    }

private:
    Watched& run_;
    RewardSettings reward_;
    Time interval_;
    Meter meter_;
    std::vector<double> rows_;
};

template <class Run>
void bind_constructor(nb::class_<MeteredRun>& meter) {
    meter.def(
        "__init__",
        [](MeteredRun* self, Run& run, const Scenario& scenario, const RewardSettings& reward, Time interval,
           Time end, const std::vector<Time>& marks,
           Time begin) { new (self) MeteredRun(run, scenario, reward, interval, end, marks, begin); },
        nb::arg("run"), nb::arg("scenario"), nb::arg("reward"), nb::arg("interval"), nb::arg("end"),
        nb::arg("marks") = std::vector<Time>(), nb::arg("begin") = 0, nb::keep_alive<1, 2>(),
        nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace

void bind_meter(nb::module_& module) {
    nb::class_<RecordedRun>(module, "RecordedRun", "A run that has happened elsewhere, for a Meter.")
        .def(
            "__init__",
            [](RecordedRun* self, Time interval, const std::vector<nb::bytes>& flows,
               const std::vector<nb::bytes>& queues) {
                new (self) RecordedRun(interval, to_rows<FlowState>(flows), to_rows<QueueSample>(queues));
            },
            nb::arg("interval"), nb::arg("flows"), nb::arg("queues"),
            "Rows of FlowState of each flow and of QueueSample of each hop, at 0, interval, 2 · interval, … in "
            "ns.");
    nb::list columns;
    for (std::size_t column = 0; column < kRunColumns; ++column) columns.append(kInfoColumns[column].name);
    columns.append("reward");
    module.attr("METER_COLUMNS") = nb::tuple(columns);
    nb::class_<MeteredRun> meter(
        module, "Meter",
        "Measures a run from `begin` in intervals. The share of the capacity is that of the mean capacity from "
        "`begin` to `end`. At the marks the totals of all flows are kept. Times are in ns.");
    bind_constructor<Simulation>(meter);
    bind_constructor<RecordedRun>(meter);
    meter
        .def("run_until", &MeteredRun::run_until, nb::arg("until"), nb::call_guard<nb::gil_scoped_release>(),
             "Runs on, and measures; the last interval may be shorter than the others.")
        .def_prop_ro("rows", &MeteredRun::rows, nb::rv_policy::automatic, "Shape (intervals, METER_COLUMNS).")
        .def_prop_ro("times", &MeteredRun::times, nb::rv_policy::automatic,
                     "The end of each interval, in ns.")
        .def_prop_ro("received", &MeteredRun::received, nb::rv_policy::automatic,
                     "UDP payload in bytes that each flow had received, shape (intervals, flows).")
        .def("totals", &MeteredRun::totals, nb::arg("mark"), nb::arg("flow"),
             "A flow's totals at one of the marks, counted from 0.")
        .def("short_flow_totals", &MeteredRun::short_flow_totals, nb::arg("mark"), nb::arg("entry"),
             "Simulation.short_flow_totals at one of the marks, counted from 0.")
        .def("queue_occupancy_seconds", &MeteredRun::queue_occupancy_seconds, nb::arg("mark"),
             "Simulation.queue_occupancy_seconds at one of the marks.");
}

}  // namespace quicgym::bindings
