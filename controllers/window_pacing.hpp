// Parts that the window-based controllers share: the recovery period and the pacing rate.
#pragma once

#include "controllers/controller.hpp"

namespace quicgym {

// RFC 9002 7.3.2: from a congestion event until a packet sent after it is acknowledged. One
// period reacts once, whatever else is lost or marked among the packets sent before it began.
class RecoveryPeriod {
public:
    // RFC 9002 B.5, InCongestionRecovery: was a packet sent at this time sent before the event?
    bool covers(Time sent_time) const { return sent_time <= start_; }
    bool active() const { return active_; }
    void begin(Time now) {
        start_ = now;
        active_ = true;
    }
    void on_ack(Time largest_acked_sent_time) { active_ = active_ && covers(largest_acked_sent_time); }
    void reset() { *this = RecoveryPeriod(); }
    ControllerMode mode(bool in_slow_start) const {
        return active_         ? ControllerMode::recovery
               : in_slow_start ? ControllerMode::slow_start
                               : ControllerMode::congestion_avoidance;
    }

private:
    Time start_ = -1;  // before every packet
    bool active_ = false;
};

// N in RFC 9002 7.7, for controllers without a parameter for it; in slow start as NewReno has it by default.
inline constexpr double kPacingGain = 1.25;
inline constexpr double kSlowStartPacingGain = 2.0;

// RFC 9002 7.7: rate = N * congestion_window / smoothed_rtt.
class WindowPacing {
public:
    void update_rtt(Time smoothed_rtt) {
        if (smoothed_rtt > 0) round_trips_per_second_ = 1e9 / static_cast<double>(smoothed_rtt);
    }
    double rate(double gain, double window_bytes) const {
        return gain * window_bytes * round_trips_per_second_;
    }

private:
    double round_trips_per_second_ = 1e9 / static_cast<double>(kInitialRtt);
};

// RFC 9002 7.2: kMinimumWindow.
inline constexpr std::uint64_t kMinimumWindowDatagrams = 2;

// A controller whose window grows with ACKs and shrinks with congestion events. On an ACK with
// app_limited set the window does not grow (RFC 9002 7.8), and nothing that would make it grow
// faster later moves on either.
class LossBasedController : public Controller {
public:
    using Controller::Controller;

    // In place of on_ack while the window is to be held. `time_goes_on`: a curve over time runs on meanwhile,
    // and the window jumps to it afterwards; otherwise it stands still too.
    virtual void on_ack_held(const AckEvent& event, bool time_goes_on) {
        (void)time_goes_on;
        AckEvent held = event;
        held.app_limited = true;
        on_ack(held);
    }

    // Multiplies the window by a factor of at most 1 outside of any congestion event; the minimum
    // window holds. Congestion avoidance stays what it is; slow start may end here.
    virtual void scale_window(double factor, bool ends_slow_start) = 0;
};

}  // namespace quicgym
