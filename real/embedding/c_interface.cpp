// The functions of real/embedding/quicgym/controller.h. No exception leaves this file.
#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "controllers/catalogue.hpp"
#include "real/embedding/agent.hpp"
#include "real/embedding/connection.hpp"
#include "real/embedding/quicgym/controller.h"
#include "sim/policy/policy.hpp"

using quicgym::ControllerSnapshot;
using quicgym::FlowState;
using quicgym::ParameterValues;
using quicgym::SteeredFlows;
using quicgym::embedding::Agent;
using quicgym::embedding::Connection;

struct quicgym_controller {
    Connection connection;
    std::optional<Agent> agent = std::nullopt;
    bool decides_by_timer = false;  // the controller is an agent of other authors
};

struct quicgym_policy {
    std::shared_ptr<const quicgym::policy::Policy> policy;
};

namespace {

static_assert(sizeof(quicgym::Time) == sizeof(std::int64_t));

std::string& last_error() {
    thread_local std::string text;
    return text;
}

void say(const char* text) noexcept {
    try {
        last_error() = text;
    } catch (...) {
        last_error().clear();
    }
}

// The connection as the only flow that an actuator knows.
class OneFlow : public SteeredFlows {
public:
    explicit OneFlow(Connection& connection) : connection_(connection) {}
    ControllerSnapshot snapshot(std::size_t) const override { return connection_.controller().snapshot(); }
    ParameterValues parameters(std::size_t) const override { return connection_.controller().parameters(); }
    void set_parameters(std::size_t, const ParameterValues& values) override {
        connection_.set_parameters(values);
    }

private:
    Connection& connection_;
};

// The error code for what `work` throws.
template <class Work>
int guarded(Work work) noexcept {
    try {
        work();
        return QUICGYM_OK;
    } catch (const std::bad_alloc&) {
        say("out of memory");
        return QUICGYM_OUT_OF_MEMORY;
    } catch (const std::invalid_argument& error) {
        say(error.what());
        return QUICGYM_INVALID;
    } catch (const std::exception& error) {
        say(error.what());
    } catch (...) {
        say("unknown exception");
    }
    return QUICGYM_INTERNAL;
}

template <class Type>
Type& given(Type* pointer, const char* name) {
    if (pointer == nullptr) throw std::invalid_argument(std::string(name) + " is NULL");
    return *pointer;
}

template <class Element>
std::span<const Element> given(const Element* elements, std::size_t count, const char* name) {
    if (count > 0) given(elements, name);
    return {elements, count};
}

std::string_view content(const void* bytes, std::size_t count, const char* name) {
    const auto read = given(static_cast<const char*>(bytes), count, name);
    return {read.data(), read.size()};
}

// A policy, or nullptr where `read` throws.
template <class Read>
quicgym_policy* policy_by(Read read) noexcept {
    quicgym_policy* made = nullptr;
    guarded([&] { made = new quicgym_policy{std::make_shared<const quicgym::policy::Policy>(read())}; });
    return made;
}

void check_datagram(std::uint64_t max_datagram_bytes) {
    if (max_datagram_bytes >= 1200 && max_datagram_bytes <= UINT16_MAX) return;
    throw std::invalid_argument("max_datagram_bytes = " + std::to_string(max_datagram_bytes) +
                                "; give 1200 to 65535");
}

// Calls `work` with the connection.
template <class Work>
int with(quicgym_controller* controller, Work work) noexcept {
    return guarded([&] { work(given(controller, "controller").connection); });
}

}  // namespace

extern "C" {

const char* quicgym_version(void) {
    return QUICGYM_VERSION;
}

int quicgym_api_version(void) {
    return QUICGYM_API_VERSION;
}

const char* quicgym_last_error(void) {
    return last_error().c_str();
}

quicgym_controller* quicgym_controller_new(const char* name, std::uint64_t max_datagram_bytes,
                                           std::uint64_t seed, std::int64_t now_ns) {
    quicgym_controller* made = nullptr;
    guarded([&] {
        given(name, "name");
        check_datagram(max_datagram_bytes);
        made = new quicgym_controller{
            Connection(quicgym::make_controller(name, {}, max_datagram_bytes), seed, now_ns)};
    });
    return made;
}

quicgym_controller* quicgym_controller_of(const void* specification, std::uint64_t max_datagram_bytes,
                                          std::uint64_t seed, std::int64_t now_ns) {
    quicgym_controller* made = nullptr;
    guarded([&] {
        check_datagram(max_datagram_bytes);
        const auto& known =
            given(static_cast<const quicgym::ControllerSpecification*>(specification), "specification");
        made = new quicgym_controller{
            Connection(known.make(complete_parameters(known, {}), max_datagram_bytes), seed, now_ns)};
    });
    return made;
}

void quicgym_controller_free(quicgym_controller* controller) {
    delete controller;
}

int quicgym_set_parameter(quicgym_controller* controller, const char* name, const double* values,
                          std::size_t count) {
    return with(controller, [&](Connection& connection) {
        given(name, "name");
        const std::span<const double> numbers = given(values, count, "values");
        for (const double number : numbers) {
            if (std::isnan(number)) throw std::invalid_argument(std::string(name) + " is not a number");
        }
        if (numbers.empty()) throw std::invalid_argument(std::string(name) + " has no value");
        connection.set_parameters({{name, {numbers.begin(), numbers.end()}}});
    });
}

int quicgym_on_handshake(quicgym_controller* controller, std::int64_t now_ns, std::int64_t rtt_ns) {
    return with(controller, [&](Connection& connection) { connection.on_handshake(now_ns, rtt_ns); });
}

int quicgym_on_sent(quicgym_controller* controller, std::int64_t now_ns, std::uint64_t packet_number,
                    std::uint64_t bytes) {
    return with(controller,
                [&](Connection& connection) { connection.on_sent(now_ns, packet_number, bytes); });
}

int quicgym_on_ack(quicgym_controller* controller, std::int64_t now_ns, std::int64_t ack_delay_ns,
                   const std::uint64_t* packet_numbers, std::size_t count) {
    return with(controller, [&](Connection& connection) {
        connection.on_ack(now_ns, ack_delay_ns, given(packet_numbers, count, "packet_numbers"));
    });
}

int quicgym_on_ecn(quicgym_controller* controller, std::int64_t now_ns, std::uint64_t newly_marked_packets) {
    return with(controller, [&](Connection& connection) { connection.on_ecn(now_ns, newly_marked_packets); });
}

int quicgym_on_loss(quicgym_controller* controller, std::int64_t now_ns, const std::uint64_t* packet_numbers,
                    std::size_t count) {
    return with(controller, [&](Connection& connection) {
        connection.on_loss(now_ns, given(packet_numbers, count, "packet_numbers"));
    });
}

int quicgym_on_persistent_congestion(quicgym_controller* controller, std::int64_t now_ns) {
    return with(controller, [&](Connection& connection) { connection.on_persistent_congestion(now_ns); });
}

int quicgym_on_app_limited(quicgym_controller* controller, std::int64_t now_ns) {
    return with(controller, [&](Connection& connection) { connection.on_app_limited(now_ns); });
}

int quicgym_on_window_unused(quicgym_controller* controller, std::int64_t now_ns) {
    return with(controller, [&](Connection& connection) { connection.on_window_unused(now_ns); });
}

int quicgym_set_application(quicgym_controller* controller, std::uint64_t unsent_bytes,
                            std::uint64_t blocked_events) {
    return with(controller,
                [&](Connection& connection) { connection.set_application(unsent_bytes, blocked_events); });
}

std::uint64_t quicgym_window_bytes(quicgym_controller* controller) {
    std::uint64_t bytes = 0;
    with(controller, [&](Connection& connection) { bytes = connection.controller().window_bytes(); });
    return bytes;
}

double quicgym_pacing_rate_bytes_per_s(quicgym_controller* controller) {
    double rate = 0.0;
    with(controller, [&](Connection& connection) { rate = connection.controller().pacing_rate(); });
    return rate;
}

int quicgym_snapshot(quicgym_controller* controller, quicgym_snapshot_t* snapshot) {
    return with(controller, [&](Connection& connection) {
        quicgym_snapshot_t& out = given(snapshot, "snapshot");
        const FlowState state = connection.state(connection.now());
        const ControllerSnapshot inner = connection.controller().snapshot();
        out = {};
        out.window_bytes = state.sample.window_bytes;
        out.pacing_rate_bytes_per_s = state.sample.pacing_rate;
        out.in_flight_bytes = state.sample.in_flight_bytes;
        out.delivered_bytes = state.sample.delivered_bytes;
        out.lost_bytes = state.sample.lost_bytes;
        out.latest_rtt_ns = state.sample.rtt;
        out.smoothed_rtt_ns = state.sample.smoothed_rtt;
        out.min_rtt_ns = state.min_rtt;
        out.bandwidth_estimate_bytes_per_s = inner.bandwidth_estimate;
        out.round_trip_estimate_ns = inner.round_trip_estimate;
        out.mode = static_cast<std::int32_t>(state.sample.mode);
        out.wants_ect1 = connection.controller().wants_l4s() ? 1 : 0;
    });
}

quicgym_policy* quicgym_policy_load(const char* path) {
    return policy_by([&] {
        given(path, "path");
        return quicgym::policy::load_policy(path);
    });
}

quicgym_policy* quicgym_policy_read(const void* description, std::size_t description_bytes,
                                    const void* weights, std::size_t weights_bytes) {
    return policy_by([&] {
        return quicgym::policy::read_policy(content(description, description_bytes, "description"),
                                            content(weights, weights_bytes, "weights"));
    });
}

void quicgym_policy_free(quicgym_policy* policy) {
    delete policy;
}

quicgym_controller* quicgym_policy_controller_new(const quicgym_policy* policy,
                                                  std::uint64_t max_datagram_bytes, std::uint64_t seed,
                                                  std::int64_t now_ns) {
    quicgym_controller* made = nullptr;
    guarded([&] {
        const auto& shared = given(policy, "policy").policy;
        check_datagram(max_datagram_bytes);
        std::unique_ptr<quicgym_controller> owned(
            new quicgym_controller{Connection(shared->make_controller(max_datagram_bytes), seed, now_ns)});
        owned->decides_by_timer = shared->agent.has_value();
        if (!owned->decides_by_timer) owned->agent.emplace(shared, max_datagram_bytes);
        made = owned.release();
    });
    return made;
}

int quicgym_policy_decide(quicgym_controller* controller, std::int64_t now_ns,
                          std::int64_t* next_decision_ns) {
    return guarded([&] {
        quicgym_controller& steered = given(controller, "controller");
        std::int64_t& next = given(next_decision_ns, "next_decision_ns");
        if (steered.decides_by_timer) {
            constexpr quicgym::Time kLongest = 10 * quicgym::kMillisecond;  // before it has set its timer
            steered.connection.state(now_ns);                               // which fires it
            next = std::min(steered.connection.controller().timer(), now_ns + kLongest);
            return;
        }
        if (!steered.agent) {
            throw std::invalid_argument(
                "the controller has no policy; make it with "
                "quicgym_policy_controller_new");
        }
        const FlowState state = steered.connection.state(now_ns);
        OneFlow flow(steered.connection);
        next = steered.agent->decide(flow, state, now_ns);
    });
}

}  // extern "C"
