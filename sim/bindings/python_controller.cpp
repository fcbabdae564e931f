// Controllers written in Python: subclasses of quicgym.Controller, on both engines.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "controllers/catalogue.hpp"
#include "controllers/plugin.hpp"
#include "controllers/window_pacing.hpp"
#include "sim/bindings/controllers.hpp"
#include "sim/bindings/modules.hpp"

namespace quicgym::bindings {

namespace nb = nanobind;

namespace {

// At less than a byte per second, the time until the next packet would not fit the sender's clock.
constexpr double kSlowestPacingRate = 1.0;

ControllerSpecification to_specification(const nb::object& info) {
    ControllerSpecification result{};
    result.name = nb::cast<std::string>(info.attr("name"));
    for (const nb::handle parameter : info.attr("parameters")) {
        result.parameters.push_back({nb::cast<std::string>(parameter.attr("name")),
                                     nb::cast<std::vector<double>>(parameter.attr("default")),
                                     nb::cast<double>(parameter.attr("minimum")),
                                     nb::cast<double>(parameter.attr("maximum")),
                                     nb::cast<bool>(parameter.attr("is_list")),
                                     nb::cast<std::string>(parameter.attr("unit")),
                                     {},
                                     {}});
    }
    return result;
}

nb::object interned(const char* name) {
    return nb::steal(PyUnicode_InternFromString(name));
}

template <class... Arguments>
[[noreturn]] void refuse(PyObject* exception, const char* format, const Arguments&... arguments) {
    PyErr_Format(exception, format, arguments...);
    nb::raise_python_error();
}

// A Python object that shows an event of C++. One serves all calls, since making one costs more than
// filling it; and whoever keeps it beyond the call reads a later event's values, not freed memory.
template <class Event>
struct EventView {
    nb::object object = nb::cast(Event());
    Event* event = nb::inst_ptr<Event>(object);
};

class PythonController final : public Controller {
public:
    // The interpreter's lock is held.
    PythonController(const nb::object& python_class, const ControllerSpecification& specification,
                     const ParameterValues& values, std::uint64_t max_datagram_bytes)
        : Controller(max_datagram_bytes),
          specification_(specification),
          values_(complete_parameters(specification, values)),
          python_(std::make_unique<Python>(python_class)) {
        window_bytes_ = initial_window_bytes(max_datagram_bytes);
        guarded("__init__", [&] {
            python_->instance = python_class();
            python_->instance.attr("max_datagram_bytes") = max_datagram_bytes;
            python_->instance.attr("window_bytes") = window_bytes_;
            python_->bind_methods();
            if (python_->on_timer) python_->instance.attr("timer") = nb::none();
        });
        call("on_parameters", python_->on_parameters, to_python(values_));
        call("on_start", python_->instance.attr("on_start"), max_datagram_bytes);
        guarded("on_start", [&] { watch_attributes(); });
    }

    // By copy.deepcopy of the Python object. What C++ shows to it is not copied, but has its counterpart in
    // the copy: the events, and the generator, which it may keep. The interpreter's lock is held.
    PythonController(const PythonController& other)
        : Controller(other),
          specification_(other.specification_),
          values_(other.values_),
          pacing_(other.pacing_),
          mode_(other.mode_),
          now_(other.now_),
          python_(std::make_unique<Python>(other.python_->type)) {
        const Python& original = *other.python_;
        *python_->random = *original.random;
        nb::dict counterparts;
        for (const auto& [from, to] : {std::pair(original.random_object, python_->random_object),
                                       std::pair(original.ack.object, python_->ack.object),
                                       std::pair(original.loss.object, python_->loss.object),
                                       std::pair(original.ecn.object, python_->ecn.object)}) {
            counterparts[nb::steal(PyLong_FromVoidPtr(from.ptr()))] = to;
        }
        failing_as("_copy_failure", [&] {
            const nb::object deepcopy = nb::module_::import_("copy").attr("deepcopy");
            python_->instance = deepcopy(original.instance, counterparts);
            if (!python_->instance.type().is(python_->type)) {
                refuse(PyExc_TypeError, "the copy is %R", python_->instance.ptr());
            }
            python_->bind_methods();
            watch_attributes();
        });
        python_->known = nb::steal(PySet_New(original.known.ptr()));
        python_->mode = original.mode;
    }

    ~PythonController() override {
        const nb::gil_scoped_acquire lock;
        python_.reset();
    }

    std::unique_ptr<Controller> clone() const override {
        const nb::gil_scoped_acquire lock;
        return std::make_unique<PythonController>(*this);
    }

    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override {
        if (!python_->on_packet_sent) return;
        const nb::gil_scoped_acquire lock;
        now_ = now;
        call("on_packet_sent", python_->on_packet_sent, now, bytes, in_flight_bytes);
    }

    void on_ack(const AckEvent& event) override {
        pacing_.update_rtt(event.smoothed_rtt);
        const nb::gil_scoped_acquire lock;
        now_ = event.now;
        // The flow's generator lends its state to one that Python owns and may keep.
        *python_->random = *event.random;
        *python_->ack.event = event;
        python_->ack.event->random = python_->random;
        call("on_ack", python_->on_ack, python_->ack.object);
        *event.random = *python_->random;
    }

    void on_loss(const LossEvent& event) override {
        const nb::gil_scoped_acquire lock;
        now_ = event.now;
        *python_->loss.event = event;
        call("on_loss", python_->on_loss, python_->loss.object);
    }

    void on_persistent_congestion(Time now) override {
        const nb::gil_scoped_acquire lock;
        now_ = now;
        call("on_persistent_congestion", python_->instance.attr("on_persistent_congestion"), now);
    }

    void on_ecn(const EcnEvent& event) override {
        const nb::gil_scoped_acquire lock;
        now_ = event.now;
        *python_->ecn.event = event;
        call("on_ecn", python_->instance.attr("on_ecn"), python_->ecn.object);
    }

    void on_timer(Time now) override {
        const nb::gil_scoped_acquire lock;
        now_ = now;
        guarded("on_timer", [&] { nb::setattr(python_->instance, python_->timer_name, nb::none()); });
        call("on_timer", python_->on_timer, now);
        guarded("on_timer", [&] {
            if (timer_ > now) return;
            refuse(PyExc_ValueError,
                   "timer is %lld ns, and now is %lld ns; on_timer must set a later time, or None",
                   static_cast<long long>(timer_), static_cast<long long>(now));
        });
    }

    void set_parameters(const ParameterValues& values) override {
        ParameterValues changed = complete_parameters(specification_, values);
        std::erase_if(changed, [&](const auto& entry) { return !values.contains(entry.first); });
        const nb::gil_scoped_acquire lock;
        call("on_parameters", python_->on_parameters, to_python(changed));
        for (auto& [name, numbers] : changed) values_[name] = std::move(numbers);
    }

    ParameterValues parameters() const override { return values_; }

    ControllerSnapshot snapshot() const override {
        ControllerSnapshot result;
        result.window_bytes = window_bytes_;
        result.pacing_rate = pacing_rate_;
        result.mode = mode_;
        return result;
    }

private:
    // Everything whose end needs the interpreter's lock.
    struct Python {
        explicit Python(const nb::object& python_class) : type(python_class) {
            // By its setter, which lets the event keep the generator alive.
            ack.object.attr("random") = random_object;
        }

        void bind_methods() {
            on_parameters = instance.attr("on_parameters");
            on_ack = instance.attr("on_ack");
            on_loss = instance.attr("on_loss");
            // Both do nothing unless overridden, which is worth knowing for every packet.
            const nb::object base = nb::module_::import_("quicgym.controllers").attr("Controller");
            if (!type.attr("on_packet_sent").is(base.attr("on_packet_sent")))
                on_packet_sent = instance.attr("on_packet_sent");
            if (!type.attr("on_timer").is(base.attr("on_timer"))) on_timer = instance.attr("on_timer");
        }

        nb::object type;
        nb::object instance;
        nb::object on_parameters;
        nb::object on_ack;
        nb::object on_loss;
        nb::object on_packet_sent;  // null: not overridden
        nb::object on_timer;        // the same; `timer` is then no attribute
        nb::object window_name = interned("window_bytes");
        nb::object pacing_name = interned("pacing_rate");
        nb::object mode_name = interned("mode");
        nb::object timer_name = interned("timer");
        nb::object mode;        // as read last
        nb::object attributes;  // the instance's own; null before on_start has returned
        nb::object known;       // the names that methods may assign
        nb::object random_object = nb::cast(Random(0, RandomPurpose::controller, 0));
        Random* random = nb::inst_ptr<Random>(random_object);
        EventView<AckEvent> ack;
        EventView<LossEvent> loss;
        EventView<EcnEvent> ecn;
    };

    nb::dict to_python(const ParameterValues& values) const {
        nb::dict result;
        for (const auto& parameter : specification_.parameters) {
            const auto found = values.find(parameter.name);
            if (found == values.end()) continue;
            const nb::object value = parameter.is_list ? nb::cast(found->second) : nb::cast(found->second[0]);
            result[parameter.name.c_str()] = value;
        }
        return result;
    }

    template <class... Arguments>
    void call(const char* callback, const nb::object& method, const Arguments&... arguments) {
        guarded(callback, [&] {
            const nb::object result = method(arguments...);
            if (!result.is_none()) {
                refuse(PyExc_TypeError, "it returned %R, where None is expected: set the attributes instead",
                       result.ptr());
            }
            check_attributes();
            read_back();
        });
    }

    // Attributes live in a dictionary of this instance alone: one that shares its keys with other instances,
    // as Python makes them, doubles the time of a small on_ack once somebody has asked for it. By __dict__ of
    // the type: since Python 3.13, PyObject_GenericSetDict leaves what the instance itself has in force.
    void watch_attributes() {
        PyObject* const instance = python_->instance.ptr();
        const nb::object name = interned("__dict__");
        const nb::object shared = nb::steal(PyObject_GenericGetAttr(instance, name.ptr()));
        python_->attributes = nb::steal(PyDict_New());
        python_->known = nb::steal(PySet_New(shared.ptr()));
        if (!shared.is_valid() || !python_->known.is_valid() ||
            PyDict_Update(python_->attributes.ptr(), shared.ptr()) != 0 ||
            PyObject_GenericSetAttr(instance, name.ptr(), python_->attributes.ptr()) != 0) {
            nb::raise_python_error();
        }
        attribute_count_ = PyDict_GET_SIZE(python_->attributes.ptr());
    }

    // An attribute that nothing reads is a mistake. Their number shows it, at no cost to assignments.
    void check_attributes() {
        if (!python_->attributes.is_valid() || PyDict_GET_SIZE(python_->attributes.ptr()) == attribute_count_)
            return;
        const nb::object text = python_->instance.attr("_new_attributes")(python_->known);
        if (nb::len(text) > 0) refuse(PyExc_AttributeError, "%U", text.ptr());
        attribute_count_ = PyDict_GET_SIZE(python_->attributes.ptr());
    }

    template <class Function>
    void guarded(const char* callback, Function function) {
        failing_as("_failure", function, callback, to_seconds(now_));
    }

    // The class's method `failure` turns whatever the function raises into the error that users see.
    template <class Function, class... Arguments>
    void failing_as(const char* failure, Function function, const Arguments&... arguments) {
        try {
            function();
        } catch (const nb::python_error& error) {
            // KeyboardInterrupt and its like are not the controller's doing.
            if (!error.matches(PyExc_Exception)) throw;
            const nb::object made = python_->type.attr(failure)(arguments..., error.value());
            PyErr_SetObject(made.type().ptr(), made.ptr());
            nb::raise_python_error();
        }
    }

    void read_back() {
        read_window();
        read_mode();
        read_pacing_rate();
        if (python_->on_timer) read_timer();
    }

    nb::object read(const nb::object& name) const { return nb::getattr(python_->instance, name); }

    void read_window() {
        const nb::object value = read(python_->window_name);
        // NumPy's integers have an index, too; a float has none.
        if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) {
            refuse(PyExc_TypeError, "window_bytes is %R; it must be an int above 0", value.ptr());
        }
        const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
        if (!number.is_valid()) nb::raise_python_error();
        int overflow = 0;
        const long long window = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
        if (overflow != 0 || window <= 0) {
            refuse(PyExc_ValueError, "window_bytes is %R; it must be an int above 0 and below 2**63",
                   value.ptr());
        }
        window_bytes_ = static_cast<std::uint64_t>(window);
    }

    void read_pacing_rate() {
        const nb::object value = read(python_->pacing_name);
        if (value.is_none()) {
            const double gain = mode_ == ControllerMode::slow_start ? kSlowStartPacingGain : kPacingGain;
            pacing_rate_ = pacing_.rate(gain, static_cast<double>(window_bytes_));
            return;
        }
        const double rate = PyBool_Check(value.ptr()) ? -1.0 : PyFloat_AsDouble(value.ptr());
        if (PyBool_Check(value.ptr()) || PyErr_Occurred()) {
            PyErr_Clear();
            refuse(PyExc_TypeError, "pacing_rate is %R; it must be a number above 0, or None", value.ptr());
        }
        if (!std::isfinite(rate) || rate <= 0) {
            refuse(PyExc_ValueError, "pacing_rate is %R; it must be a finite number above 0, or None",
                   value.ptr());
        }
        pacing_rate_ = std::max(rate, kSlowestPacingRate);
    }

    void read_timer() {
        const nb::object value = read(python_->timer_name);
        if (value.is_none()) {
            timer_ = kNever;
            return;
        }
        if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr()))
            refuse(PyExc_TypeError, "timer is %R; it must be an int of nanoseconds, or None", value.ptr());
        const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
        if (!number.is_valid()) nb::raise_python_error();
        int overflow = 0;
        const long long time = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
        if (overflow != 0 || time < 0)
            refuse(PyExc_ValueError, "timer is %R; it must be from 0 to 2**63 - 1 nanoseconds, or None",
                   value.ptr());
        timer_ = time;
    }

    void read_mode() {
        nb::object value = read(python_->mode_name);
        if (value.is(python_->mode)) return;
        const nb::handle modes = nb::type<ControllerMode>();
        const nb::object members = modes.attr("__members__");
        if (!nb::isinstance<nb::str>(value) || PySequence_Contains(members.ptr(), value.ptr()) != 1) {
            const nb::object known = nb::str(", ").attr("join")(members);
            refuse(PyExc_ValueError, "mode is %R; it must be one of %U", value.ptr(), known.ptr());
        }
        mode_ = nb::cast<ControllerMode>(members[value]);
        python_->mode = std::move(value);
    }

    const ControllerSpecification specification_;
    ParameterValues values_;
    WindowPacing pacing_;
    ControllerMode mode_ = ControllerMode::congestion_avoidance;
    Time now_ = 0;  // of the last event
    Py_ssize_t attribute_count_ = 0;
    std::unique_ptr<Python> python_;
};

}  // namespace

ControllerFactory python_controller_factory(const nb::object& info) {
    struct Shared {
        nb::object python_class;
        ControllerSpecification specification;
    };
    // Copies of the factory share what only the interpreter's lock lets go of.
    const std::shared_ptr<const Shared> shared(new Shared{info.attr("python_class"), to_specification(info)},
                                               [](const Shared* last) {
                                                   const nb::gil_scoped_acquire lock;
                                                   delete last;
                                               });
    return [shared](const ParameterValues& values, std::uint64_t max_datagram_bytes) {
        const nb::gil_scoped_acquire lock;
        return std::unique_ptr<Controller>(std::make_unique<PythonController>(
            shared->python_class, shared->specification, values, max_datagram_bytes));
    };
}

void bind_python_controllers(nb::module_& module) {
    module.def(
        "python_specification",
        [](const nb::object& info) {
            auto owned = std::make_unique<ControllerSpecification>(to_specification(info));
            owned->make = python_controller_factory(info);
            return nb::capsule(owned.release(), kControllerCapsule, [](void* specification) noexcept {
                delete static_cast<ControllerSpecification*>(specification);
            });
        },
        nb::arg("info"), "A controller in Python as extension modules define theirs in C++.");
    module.def(
        "complete_parameters",
        [](const nb::object& info, const nb::dict& values) {
            return complete_parameters(to_specification(info), to_parameter_values(values));
        },
        nb::arg("info"), nb::arg("values"), "The same for a ControllerInfo.");
}

}  // namespace quicgym::bindings
