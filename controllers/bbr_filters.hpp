// The windowed filters of BBR's model.
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

}  // namespace quicgym
