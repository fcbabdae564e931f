// The interface between the QUIC sender and a congestion controller.
//
// A controller holds no clock and no random source: both come in with the event. It is called
// once per ACK frame, not once per acknowledged packet, and it never allocates after construction.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/base/fields.hpp"
#include "sim/base/random.hpp"
#include "sim/base/time.hpp"

namespace quicgym {

// A parameter's value: one number, or a list such as BBR's gain cycle. The catalogue
// (catalogue.hpp) says which, with range and unit.
using ParameterValues = std::map<std::string, std::vector<double>>;

// Delivery-rate sample, draft-cheng-iccrg-delivery-rate-estimation-02, of the packet that was sent last
// among those that are newly acknowledged; what it adds for BBR version 3 is in draft-ietf-ccwg-bbr-06, 2.3.
struct RateSample {
    double delivery_rate = 0.0;                 // bytes per second; 0 when there is no valid sample
    Time interval = 0;                          // the longer of send and ACK interval, ns
    bool app_limited = false;                   // taken while the application, not the network, set the rate
    std::uint64_t delivered_bytes = 0;          // since that packet was sent
    std::uint64_t lost_bytes = 0;               // declared lost since then
    std::uint64_t in_flight_at_send_bytes = 0;  // when it was sent, itself included
};

// Everything known after one ACK frame was processed; losses that it revealed included.
struct AckEvent {
    Time now = 0;
    Time rtt = 0;           // latest sample, less the peer's ACK delay (RFC 9002 5.3); 0: none
    Time measured_rtt = 0;  // the same sample with the ACK delay: now less the time of sending; 0: none
    Time smoothed_rtt = 0;  // RFC 9002 5.3
    Time min_rtt = 0;       // since the start or persistent congestion, RFC 9002 5.2
    Time largest_acked_sent_time = 0;   // send time of the largest newly acknowledged packet
    std::uint64_t delivered_bytes = 0;  // total acknowledged on the connection so far
    std::uint64_t newly_acked_bytes = 0;
    std::uint64_t newly_acked_packets = 0;
    std::uint64_t newly_lost_bytes = 0;  // as this ACK frame shows; the loss timer's are for on_loss alone
    std::uint64_t prior_in_flight_bytes = 0;  // before this ACK frame
    std::uint64_t in_flight_bytes = 0;        // after it
    std::uint64_t blocked_events = 0;         // so far: send buffer full, or DATA_BLOCKED sent (RFC 9000 4.1)
    std::uint64_t unsent_bytes = 0;           // written by the application, not yet sent a first time
    RateSample sample;
    // Not the window has limited what is acknowledged, but the application or the peer's flow control (RFC
    // 9002 7.8): true until all that was in flight at the last such moment is delivered.
    bool app_limited = false;
    // The same of the application alone, which RateSample::app_limited is of (draft-ietf-ccwg-bbr-06,
    // C.app_limited): a sender that waits for flow control has unsent data.
    bool no_unsent_data = false;
    bool round_start = false;  // this ACK begins a new packet-timed round
    Random* random = nullptr;  // the flow's own stream; never null when the sender calls
};

struct LossEvent {
    Time now = 0;
    Time largest_lost_sent_time = 0;
    std::uint64_t lost_bytes = 0;
    std::uint64_t lost_packets = 0;
    std::uint64_t in_flight_bytes = 0;  // after removing what was lost
};

// One packet of a LossEvent.
struct LostPacket {
    Time now = 0;
    Time sent_time = 0;
    std::uint64_t packet_number = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t in_flight_at_send_bytes = 0;  // itself included
    std::uint64_t lost_since_sent_bytes = 0;    // declared lost since it was sent, itself included
    std::uint64_t delivered_bytes = 0;          // total acknowledged on the connection so far
    bool app_limited = false;                   // its RateSample's, had it arrived
};

struct EcnEvent {
    Time now = 0;
    Time largest_acked_sent_time = 0;
    std::uint64_t newly_marked_packets = 0;  // increase of the ECN-CE count
    std::uint64_t in_flight_bytes = 0;
};

QUICGYM_ENUM(ControllerMode, slow_start, congestion_avoidance, recovery, startup, drain, probe_bw, probe_rtt)

// BBR version 3's part of a ProbeBW cycle.
enum class ProbeBwPhase : std::uint8_t { none = 0, down = 1, cruise = 2, refill = 3, up = 4 };

// The state that an observer may read between events. Fields that an algorithm does not have stay 0.
struct ControllerSnapshot {
    std::uint64_t window_bytes = 0;
    double pacing_rate = 0.0;  // bytes per second
    ControllerMode mode = ControllerMode::slow_start;
    double bandwidth_estimate = 0.0;      // bytes per second
    Time round_trip_estimate = 0;         // what the model takes for the propagation delay, ns
    double queue_estimate_packets = 0.0;  // eBCC's diff
    // BBR's gain cycle, in ProbeBW: the pacing gain, the share of the cycle's phases that are over, and the
    // earliest time at which the present phase gives way to the next. Elsewhere 1, 0 and 0.
    double cycle_gain = 1.0;
    double cycle_passed = 0.0;
    Time cycle_phase_end = 0;
    // BBR version 3; 0: no bound.
    ProbeBwPhase probe_bw_phase = ProbeBwPhase::none;
    std::uint64_t inflight_longterm_bytes = 0;
    std::uint64_t inflight_shortterm_bytes = 0;
};

class Controller {
public:
    explicit Controller(std::uint64_t max_datagram_bytes) : max_datagram_bytes_(max_datagram_bytes) {}
    virtual ~Controller() = default;
    Controller& operator=(const Controller&) = delete;

    // A controller of the same class in the same state, independent of this one:
    // `return std::make_unique<Mine>(*this);`
    virtual std::unique_ptr<Controller> clone() const = 0;

    // Its packets carry ECT(1), which asks an L4S queue for the marks of a scalable response (RFC 9331 4.1),
    // whether or not the flow has `ecn`. Asked by the sender's constructor and after each set_parameters.
    virtual bool wants_l4s() const { return false; }
    // in_flight_bytes counts the packet just sent.
    virtual void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) {
        (void)now, (void)bytes, (void)in_flight_bytes;
    }
    // The last call for an ACK frame; on_ecn comes before on_loss, as in RFC 9002 A.7.
    virtual void on_ack(const AckEvent& event) = 0;
    // For each lost packet, in the order in which they were sent; on_loss follows for all of them.
    virtual void on_packet_lost(const LostPacket& packet) { (void)packet; }
    virtual void on_loss(const LossEvent& event) = 0;
    virtual void on_persistent_congestion(Time now) = 0;
    // Everything that the latest recovery period (RFC 9002 7.3.2) declared lost has arrived after all.
    virtual void on_spurious_loss(Time now) { (void)now; }
    virtual void on_ecn(const EcnEvent& event) = 0;
    // At the time that timer_ had, or as soon as the connection is established where that is later.
    virtual void on_timer(Time now) { (void)now; }

    // Calls on_timer. A timer is for once; on_timer may set it again, to a later time.
    void fire_timer(Time now) {
        timer_ = kNever;
        on_timer(now);
        if (timer_ <= now)
            throw std::invalid_argument(
                "a controller's on_timer must set its timer to a later time, or not at all");
    }

    // ---- Several controllers on one connection, of which one is active (switching.hpp) ----

    // In place of on_ack while another controller is active. What is known of the path stays
    // current; window and state stand still. RFC 9002 7.8 says what that takes: app_limited is set,
    // and so it is in the rate sample, because another one's window sets the rate.
    virtual void on_ack_standing_by(const AckEvent& event) { on_ack(event); }
    // The window with which a successor keeps the path as full as it is.
    virtual std::uint64_t window_to_hand_over() const { return window_bytes_; }
    // Becomes active and begins with this window. `slow_start`: nobody has filled the path yet. A
    // controller that does not care begins with its own window.
    virtual void take_over(std::uint64_t window_bytes, bool slow_start) {
        (void)window_bytes, (void)slow_start;
    }

    // Replaces the named parameters and keeps the state. Throws std::invalid_argument, naming the
    // parameter, value and range, and changes nothing in that case.
    virtual void set_parameters(const ParameterValues& values) = 0;
    virtual ParameterValues parameters() const = 0;

    virtual ControllerSnapshot snapshot() const = 0;

    // Plain members behind inline getters: the sender reads both for every packet.
    std::uint64_t window_bytes() const { return window_bytes_; }
    double pacing_rate() const { return pacing_rate_; }  // bytes per second, above 0
    Time timer() const { return timer_; }                // of on_timer; kNever: none
    std::uint64_t max_datagram_bytes() const { return max_datagram_bytes_; }

protected:
    Controller(const Controller&) = default;  // for clone()

    // A snapshot in which the algorithm's own estimates are still to be filled in.
    ControllerSnapshot snapshot_in(ControllerMode mode) const {
        return {.window_bytes = window_bytes_, .pacing_rate = pacing_rate_, .mode = mode};
    }

    std::uint64_t window_bytes_ = 0;
    double pacing_rate_ = 0.0;
    Time timer_ = kNever;  // any call may set it; the sender reads it after every call
    const std::uint64_t max_datagram_bytes_;
};

// RFC 9002 7.2: ten datagrams, but at most 14,720 bytes (or two datagrams where those are larger). Another
// number of datagrams changes the 14,720 bytes in proportion.
inline std::uint64_t initial_window_bytes(std::uint64_t max_datagram_bytes, std::uint64_t datagrams = 10) {
    const std::uint64_t most = 1'472 * datagrams;
    const std::uint64_t limit = most > 2 * max_datagram_bytes ? most : 2 * max_datagram_bytes;
    const std::uint64_t wanted = datagrams * max_datagram_bytes;
    return wanted < limit ? wanted : limit;
}

// RFC 9002 6.2.2: the RTT assumed before the first sample.
inline constexpr Time kInitialRtt = 333 * kMillisecond;

}  // namespace quicgym
