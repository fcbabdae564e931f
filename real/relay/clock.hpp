// The relay's clock. The kernel stamps packets with the time of day; the relay counts monotonic time.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "sim/base/time.hpp"

namespace quicgym::relay {

inline timespec to_timespec(Time time) {
    return {static_cast<std::time_t>(time / kSecond), static_cast<long>(time % kSecond)};
}

// Lets the calling thread wake on time. Returns whether it may come before all ordinary threads.
inline bool wake_on_time() {
    prctl(PR_SET_TIMERSLACK, 1);
    const sched_param priority{.sched_priority = 1};
    return pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0;
}

class Clock {
public:
    Clock() { follow(); }

    static Time monotonic() { return read(CLOCK_MONOTONIC); }

    // Looks at how far apart the two clocks are. They drift as the time of day is disciplined.
    void follow() {
        Time shortest = kNever;
        Time offset = offset_;
        for (int attempt = 0; attempt < kAttempts && shortest > kUndisturbed; ++attempt) {
            const Time before = monotonic();
            const Time of_day = read(CLOCK_REALTIME);
            const Time took = monotonic() - before;
            if (took >= shortest) continue;
            shortest = took;
            offset = of_day - before - took / 2;
        }
        if (followed_ && std::abs(offset - offset_) > kStep + shortest) ++steps_;
        offset_ = offset;
        followed_ = true;
    }

    Time monotonic_at(const timespec& stamp) const {
        return stamp.tv_sec * kSecond + stamp.tv_nsec - offset_;
    }

    // How often the time of day was set while it was followed.
    std::uint64_t steps() const { return steps_; }

private:
    static constexpr int kAttempts = 3;
    static constexpr Time kUndisturbed = 2 * kMicrosecond;
    static constexpr Time kStep = 200 * kMicrosecond;

    static Time read(clockid_t clock) {
        timespec now;
        clock_gettime(clock, &now);
        return now.tv_sec * kSecond + now.tv_nsec;
    }

    Time offset_ = 0;
    bool followed_ = false;
    std::uint64_t steps_ = 0;
};

}  // namespace quicgym::relay
