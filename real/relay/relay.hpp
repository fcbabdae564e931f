// The network of a scenario in real time: packets of real programs come in at one socket and leave at another
// when the model says, on a thread of its own.
//
// The kernel stamps every packet when it arrives. The network computes from the stamps when each leaves, so a
// relay that is late once is not late for good, and what it does is what the native engine would do. How late
// packets have left all the same is measured. Nothing is allocated per packet.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "real/relay/clock.hpp"
#include "real/relay/lateness.hpp"
#include "real/relay/packet_pool.hpp"
#include "real/relay/port.hpp"
#include "real/relay/worker.hpp"
#include "sim/base/fields.hpp"
#include "sim/base/time.hpp"
#include "sim/net/emulation.hpp"
#include "sim/scenario.hpp"

namespace quicgym::relay {

// Counts of what a relay has done so far.
struct Report {
    Time elapsed = 0;                                      // since start()
    std::array<net::EmulatedNetwork::Totals, 2> totals{};  // forward, backward
    std::array<QueueSample, 2> queues{};
    std::uint64_t lateness_packets = 0;  // that were due and sent
    Time lateness_p50 = 0;
    Time lateness_p99 = 0;
    Time lateness_max = 0;
    std::uint64_t unsent_packets = 0;  // that were due, and a socket did not take
    std::uint64_t moved_packets = 0;   // that were seen too late to reach the queue at their time
    Time moved_max = 0;
    std::uint64_t refused_packets = 0;   // by hosts that had closed their sockets
    std::uint64_t socket_errors = 0;     // others
    int last_error = 0;                  // errno
    std::uint64_t kernel_drops = 0;      // packets that the kernel had no room for
    std::uint64_t overflow_packets = 0;  // packets that the relay had no room for
    std::uint64_t foreign_packets = 0;
    std::uint64_t oversized_packets = 0;
    std::uint64_t clock_steps = 0;
    Time cpu = 0;  // of the thread
    bool has_realtime_priority = false;

    QUICGYM_FIELDS(Report, elapsed, lateness_packets, lateness_p50, lateness_p99, lateness_max,
                   unsent_packets, moved_packets, moved_max, refused_packets, socket_errors, last_error,
                   kernel_drops, overflow_packets, foreign_packets, oversized_packets, clock_steps, cpu,
                   has_realtime_priority)
};

class Relay {
public:
    // Throws what EmulatedNetwork does.
    Relay(const Scenario& scenario, std::uint64_t seed);

    std::size_t path_count() const { return network_.path_count(); }

    // The port of the host at which the packets of a path's way begin: `way` is forward for the host on the
    // senders' side. Each path needs both before start(). Throws std::invalid_argument for a second one.
    void add_port(std::size_t path, DataDirection way, Port port);

    // Time 0 of the scenario is now. Throws std::logic_error where a port is missing or it was started
    // before.
    void start();
    // Packets that are on their way are not delivered any more. Throws what ended the thread before. Any
    // number of threads may call stop() and report().
    void stop() { worker_.stop(); }
    // Time of Clock::monotonic() at the start; 0 before start().
    Time started_at() const { return start_; }

    // What passes is recorded. Throws std::logic_error after start(), and what EmulatedNetwork::record()
    // does.
    void record(Time interval, Time duration);
    // Complete up to the time of stop(). Throws std::logic_error while the relay runs.
    const net::Recording& recording() const;

    // While it runs, as of a moment within the last milliseconds.
    Report report();

private:
    struct Due {
        Time time;
        std::uint64_t order;
        std::uint32_t packet;  // in the pool
        std::uint32_t port;
        quic::Ecn ecn;
    };
    struct Later {  // the earliest is the heap's largest
        bool operator()(const Due& a, const Due& b) const {
            return a.time != b.time ? a.time > b.time : a.order > b.order;
        }
    };

    static std::size_t port_of(std::size_t path, DataDirection way) {
        return 2 * path + (way == DataDirection::forward ? 0 : 1);
    }
    Time now() const { return Clock::monotonic() - start_; }

    void run();
    void take_in(bool wait);
    void move_on(Time end);
    void send_due();
    Report make_report() const;

    net::EmulatedNetwork network_;
    std::vector<std::optional<Port>> ports_;  // of each path the one of the senders' side, then the other
    PacketPool pool_;
    Clock clock_;
    Time start_ = 0;
    Time tick_;
    Time margin_;
    Time rest_;

    std::vector<pollfd> polled_;  // as ports_
    std::vector<ReceivedPacket> received_;
    std::vector<Due> due_;  // a heap
    std::uint64_t order_ = 0;
    Lateness lateness_;
    std::uint64_t unsent_ = 0;
    std::uint64_t moved_ = 0;
    Time moved_max_ = 0;
    bool has_realtime_priority_ = false;

    Time stopped_at_ = 0;
    Time cpu_ = 0;

    // The relay's thread must never wait for one that reads: a reader asks, and the thread answers.
    std::mutex reading_;  // of those that read
    std::atomic<bool> is_asked_ = false;
    Report answer_;
    Worker worker_;  // last: it ends before anything else goes
};

}  // namespace quicgym::relay
