// The windowed filters of BBR's model.
#pragma once

#include <cstdint>

#include "sim/base/time.hpp"

namespace quicgym {

// Windowed maximum in constant time and space after Kathleen Nichols: the best sample of the
// window, and the best of what came after it, twice, so that a successor is at hand when the best
// one leaves the window. Time is counted in rounds. BBR draft-00, 4.1.1.2.
class WindowedMaximum {
public:
    double best() const { return samples_[0].value; }

    void update(double value, std::uint64_t round, std::uint64_t window_rounds) {
        const Sample sample{value, round};
        if (value >= samples_[0].value || round - samples_[2].round > window_rounds) {
            samples_[0] = samples_[1] = samples_[2] = sample;
            return;
        }
        if (value >= samples_[1].value) {
            samples_[1] = samples_[2] = sample;
        } else if (value >= samples_[2].value) {
            samples_[2] = sample;
        }
        const std::uint64_t age = round - samples_[0].round;
        if (age > window_rounds) {
            // The best one has expired; its successor may have, too, but then not the third.
            promote(sample);
            if (round - samples_[0].round > window_rounds) promote(sample);
        } else if (samples_[1].round == samples_[0].round && age > window_rounds / 4) {
            // A quarter of the window without a second choice: take one from the rest.
            samples_[1] = samples_[2] = sample;
        } else if (samples_[2].round == samples_[1].round && age > window_rounds / 2) {
            samples_[2] = sample;
        }
    }

private:
    struct Sample {
        double value = 0.0;
        std::uint64_t round = 0;
    };

    void promote(const Sample& sample) {
        samples_[0] = samples_[1];
        samples_[1] = samples_[2];
        samples_[2] = sample;
    }

    Sample samples_[3];
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
