// The windowed filters of BBR's model, and which samples they are to ignore.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "controllers/windowed_extreme.hpp"
#include "sim/base/time.hpp"

namespace quicgym {

// The maximum over a window of rounds, BBR draft-00, 4.1.1.2.
class WindowedMaximum : public WindowedExtreme<double, std::greater<>> {
public:
    WindowedMaximum() : WindowedExtreme(0.0) {}
};

// How far ACKs run ahead of the bandwidth where several packets share one: draft-06, 5.5.9,
// UpdateACKAggregation; Linux tcp_bbr, bbr_update_ack_aggregation.
class AckAggregation {
public:
    void update(Time now, std::uint64_t acked_bytes, double bandwidth, std::uint64_t window_bytes,
                std::uint64_t round, std::uint64_t window_rounds) {
        double expected = bandwidth * to_seconds(now - start_);
        if (delivered_ <= expected) {
            delivered_ = 0.0;
            start_ = now;
            expected = 0.0;
        }
        delivered_ += static_cast<double>(acked_bytes);
        extra_acked_.update(std::min(delivered_ - expected, static_cast<double>(window_bytes)), round,
                            window_rounds);
    }
    void restart(Time now) {
        start_ = now;
        delivered_ = 0.0;
    }
    void set_start(Time now) { start_ = now; }
    double extra_acked_bytes() const { return extra_acked_.best(); }

private:
    WindowedMaximum extra_acked_;
    Time start_ = 0;
    double delivered_ = 0.0;
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
