// The agent of bpf/steered.bpf.c: replays what the kernel tells into controllers of quicgym's C interface,
// and writes their windows and pacing rates where the program reads them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bpf/steered.h"
#include "loader/program.hpp"
#include "quicgym/controller.h"

struct ring_buffer;

namespace quicgym::linux_tcp {

// The library of the C interface, opened at run time: the wheel has no code of quicgym.
class Library {
public:
    explicit Library(const std::string& path);
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    ~Library();

    decltype(&quicgym_last_error) last_error;
    decltype(&quicgym_controller_new) controller_new;
    decltype(&quicgym_controller_of) controller_of;
    decltype(&quicgym_controller_free) controller_free;
    decltype(&quicgym_set_parameter) set_parameter;
    decltype(&quicgym_on_sent) on_sent;
    decltype(&quicgym_on_ack) on_ack;
    decltype(&quicgym_on_ecn) on_ecn;
    decltype(&quicgym_on_loss) on_loss;
    decltype(&quicgym_on_persistent_congestion) on_persistent_congestion;
    decltype(&quicgym_on_app_limited) on_app_limited;
    decltype(&quicgym_on_window_unused) on_window_unused;
    decltype(&quicgym_window_bytes) window_bytes;
    decltype(&quicgym_pacing_rate_bytes_per_s) pacing_rate;
    decltype(&quicgym_policy_load) policy_load;
    decltype(&quicgym_policy_free) policy_free;
    decltype(&quicgym_policy_controller_new) policy_controller_new;
    decltype(&quicgym_policy_decide) policy_decide;

private:
    template <class Function>
    void find(Function& function, const char* name);

    void* handle_;
};

// Decides for a connection: a controller of the catalogue with parameters, or a policy's description.
struct Steering {
    std::string controller;
    const void* specification;  // of a user's controller; null: the name is of quicgym's own
    std::map<std::string, std::vector<double>> parameters;
    std::string policy;  // a path; empty: none
};

// One connection's controller, fed from the events of the kernel.
class SteeredFlow {
public:
    // Throws std::invalid_argument with what the library says.
    SteeredFlow(const Library& library, const Steering& steering, const quicgym_policy* policy,
                const steered_event& begin);
    SteeredFlow(const SteeredFlow&) = delete;
    SteeredFlow& operator=(const SteeredFlow&) = delete;
    ~SteeredFlow();

    void take(const steered_event& event);
    void write(steered_decision& decision) const;
    std::uint64_t flow() const { return before_.flow; }

private:
    struct Packet {
        std::uint64_t number;
        std::uint64_t sent_us;
    };

    void check(int status) const;
    void take_sent(const steered_event& event);
    // The packets that are acknowledged and lost with an event, out of those in flight.
    void take_fates(const steered_event& event);
    std::vector<std::uint64_t> remove(std::size_t first, std::size_t count);
    std::int64_t time(const steered_event& event);

    const Library& library_;
    quicgym_controller* controller_;
    bool has_policy_;
    std::uint64_t datagram_bytes_;
    steered_event before_;
    std::vector<Packet> in_flight_;  // in the order of sending
    std::uint64_t next_number_ = 0;
    std::int64_t now_ns_ = 0;
    std::int64_t next_decision_ns_ = 0;
};

// A thread that looks at the events of a program every kPollNs until it is closed.
class Agent {
public:
    // Throws std::invalid_argument where there is no such controller or policy.
    Agent(const Program& program, const std::string& library, Steering steering);
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;
    ~Agent() { close(); }

    void close();
    // The error of a connection, "" if there is none. A connection with an error has Reno from then on.
    std::string problem() const;

private:
    static int on_event(void* agent, void* data, std::size_t bytes);
    void take(const steered_event& event);
    void run();
    void probe() const;

    Library library_;
    Steering steering_;
    std::shared_ptr<const quicgym_policy> policy_;
    SharedMemory decisions_;
    SharedMemory agents_;
    std::unique_ptr<ring_buffer, void (*)(ring_buffer*)> events_;
    std::map<std::uint32_t, std::unique_ptr<SteeredFlow>> flows_;  // by slot
    std::string problem_;
    std::atomic<bool> ends_ = false;
    std::thread thread_;
};

}  // namespace quicgym::linux_tcp
