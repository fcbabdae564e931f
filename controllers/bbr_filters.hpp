// The windowed filters of BBR's model, and which samples they are to ignore.
#pragma once

#include <functional>

#include "controllers/windowed_extreme.hpp"
#include "sim/base/time.hpp"

namespace quicgym {

// The maximum over a window of rounds, BBR draft-00, 4.1.1.2.
class WindowedMaximum : public WindowedExtreme<double, std::greater<>> {
public:
    WindowedMaximum() : WindowedExtreme(0.0) {}
};

// The lowest round-trip time of a time window, BBR draft-00, 4.1.2.2. A sample that equals the
// minimum renews it, as the draft says (Linux asks for a lower one).
class MinimumRoundTrip {
public:
    Time value() const { return value_; }  // 0: no sample yet
    bool expired(Time now, Time window) const { return value_ != 0 && now > stamp_ + window; }
    void set(Time rtt, Time now) {
        value_ = rtt;
        stamp_ = now;
    }
    void renew(Time now) { stamp_ = now; }

private:
    Time value_ = 0;
    Time stamp_ = 0;
};

// The packets sent under a window that ProbeRTT has cut, and until what was in flight at its end is
// delivered: the drafts mark the connection application-limited for as long (BBR draft-00, 4.3.5;
// draft-06, 5.3.4.3).
class SelfLimitedSpan {
public:
    void begin(Time now) {
        from_ = now;
        until_ = kNever;
    }
    // With every ACK of ProbeRTT; the arguments are the ACK's.
    void extend(std::uint64_t delivered_bytes, std::uint64_t in_flight_bytes) {
        until_delivered_bytes_ = delivered_bytes + in_flight_bytes;
    }
    // With every ACK after it.
    void end_if_delivered(Time now, std::uint64_t delivered_bytes) {
        if (until_delivered_bytes_ == 0 || delivered_bytes <= until_delivered_bytes_) return;
        until_delivered_bytes_ = 0;
        until_ = now;
    }
    bool is_open() const { return until_delivered_bytes_ != 0; }
    bool covers(Time sent_time) const { return sent_time > from_ && sent_time <= until_; }

private:
    Time from_ = kNever;
    Time until_ = kNever;
    std::uint64_t until_delivered_bytes_ = 0;  // 0: the span is closed
};

}  // namespace quicgym
