// quicgym's own endpoints over UDP sockets in real time: the sender and the receiver of each flow, all on one
// thread of their own.
//
// An endpoint lives at the times at which things happened: a datagram arrives when the kernel stamped it, and
// a timer expires when it was due, however late the thread woke. So a late wake-up takes nothing off the
// pacing rate. After a longer pause than kCredit the time before it is lost, as it is for any sender.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/policy/policy.hpp"
#include "sim/quic/event_log.hpp"
#include "sim/relay/clock.hpp"
#include "sim/relay/packet_pool.hpp"
#include "sim/relay/port.hpp"
#include "sim/relay/worker.hpp"
#include "sim/scenario.hpp"

namespace quicgym::relay {

inline constexpr Time kCredit = 2 * kMillisecond;

struct UdpFlowPlan {
    Flow flow;  // with its controller; a policy's own replaces it
    std::uint64_t seed;
    std::shared_ptr<const policy::Policy> policy;  // null: none steers
};

// quicgym.real.stacks.ROW_DTYPE.
struct FlowRow {
    Time time;
    std::uint64_t window_bytes;
    double pacing_rate;
    Time smoothed_rtt;
    std::uint64_t in_flight_bytes;
    std::uint64_t delivered_bytes;
    std::uint64_t lost_bytes;
    std::uint64_t lost_packets;
    std::uint64_t goodput_bytes;
    std::int64_t mode;
};

struct RttSample {
    Time time;
    Time rtt;
};

// quicgym.real.stacks.FlowRecord.
struct FlowRecord {
    std::vector<FlowRow> rows;
    std::vector<RttSample> rtt;
    std::vector<Time> decision_lateness;
    Time completion = kNever;
    std::uint64_t compared_bytes = 0;
    std::uint64_t probe_timeouts = 0;
    std::uint64_t persistent_congestion = 0;
};

class UdpFlows {
public:
    // Each flow starts at its start. Throws std::invalid_argument for an unknown controller or parameter and
    // for an interval below 1 ns, and std::system_error where the system refuses a socket.
    UdpFlows(std::vector<UdpFlowPlan> plans, Time interval, Time duration);
    ~UdpFlows();
    UdpFlows(const UdpFlows&) = delete;
    UdpFlows& operator=(const UdpFlows&) = delete;

    std::size_t flow_count() const { return flows_.size(); }
    // Where a flow's hosts are.
    Address sender_address(std::size_t flow) const;
    Address receiver_address(std::size_t flow) const;
    // Where they send to, and from where alone they take datagrams; of each flow before start(). Throws
    // std::logic_error after start(), and std::system_error for an address that cannot be reached.
    void connect(std::size_t flow, const Address& to_receiver, const Address& to_sender);

    // `zero` is time 0 on Clock::monotonic(). Throws std::logic_error where a flow is not connected, and when
    // it is called again.
    void start(Time zero);
    // Ends it, also before its duration. Throws what ended the thread: std::runtime_error where a peer sent
    // something else, or a socket failed.
    void stop() { worker_.stop(); }
    bool finished() const { return worker_.has_ended(); }

    // About now: the time, and of each flow goodput_bytes and smoothed RTT.
    struct Progress {
        Time time;
        std::vector<std::uint64_t> goodput_bytes;
        std::vector<Time> smoothed_rtt;
    };
    Progress progress() const;
    bool has_realtime_priority() const { return has_realtime_priority_; }

    // Keeps what the senders do. Throws std::logic_error after start().
    void record_events();

    // Both throw std::logic_error while the flows run.
    const FlowRecord& record(std::size_t flow) const;
    const std::vector<quic::SenderEvent>& events(std::size_t flow) const;

private:
    struct Hosts;
    struct Shown {
        std::atomic<std::uint64_t> goodput_bytes = 0;
        std::atomic<Time> smoothed_rtt = 0;
    };

    void refuse_while_running() const;
    Time now() const { return Clock::monotonic() - zero_; }
    void run();
    void wait();
    void take_in();
    void advance(Time now);
    void advance_flows(Time end);
    void sample(Time time);

    std::vector<std::unique_ptr<Hosts>> flows_;
    std::unique_ptr<Shown[]> shown_;
    Time interval_;
    Time duration_;
    Time zero_ = 0;
    Time next_row_ = 0;
    Time floor_ = 0;  // nothing happens before it any more
    Clock clock_;
    PacketPool pool_;
    std::vector<pollfd> polled_;  // of each flow the sender's and the receiver's
    std::vector<ReceivedPacket> received_;
    std::atomic<Time> shown_time_ = 0;
    std::atomic<bool> has_realtime_priority_ = false;
    Worker worker_;  // last: it ends before anything else goes
};

}  // namespace quicgym::relay
