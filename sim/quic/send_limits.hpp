// How often a sender had data and no room for it: in its send buffer, or in the peer's flow control.
#pragma once

#include <cstdint>

#include "sim/base/time.hpp"

namespace quicgym::quic {

// Unsent data that the transport takes. Between two ACKs the backlog cannot fall far, so looking once per ACK
// misses nothing. Once full, the buffer counts as full until a third of it is free, which is when Linux wakes
// a writer: without the gap every packet at the limit would be an event. An application that is always ahead
// of the network, such as a bulk transfer, fills the buffer once.
class SendBuffer {
public:
    explicit SendBuffer(std::uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

    void watch(std::uint64_t unsent_bytes) {
        if (unsent_bytes > capacity_) {
            events_ += full_ ? 0 : 1;
            full_ = true;
        } else if (unsent_bytes <= capacity_ / 3 * 2) {
            full_ = false;
        }
    }
    std::uint64_t events() const { return events_; }  // how often it became full

private:
    std::uint64_t capacity_;
    std::uint64_t events_ = 0;
    bool full_ = false;
};

// The peer's flow control (RFC 9000 4.1). A DATA_BLOCKED frame leaves for each limit at which the sender is
// blocked, and again when that one may be lost. The time counts in which new data waits although the window
// has room for it.
class DataBlocked {
public:
    void begin(Time now) {
        if (since_ == kNever) since_ = now;
    }
    void end(Time now) {
        if (since_ == kNever) return;
        blocked_ += now - since_;
        since_ = kNever;
    }
    Time time(Time now) const { return blocked_ + (since_ == kNever ? 0 : now - since_); }

    bool due(std::uint64_t limit) const { return sent_limit_ != limit; }
    void on_sent(std::uint64_t limit) {
        sent_limit_ = limit;
        if (counted_limit_ != limit) ++events_;
        counted_limit_ = limit;
    }
    void on_lost() { sent_limit_ = kNone; }
    std::uint64_t events() const { return events_; }  // limits at which one was sent

private:
    static constexpr std::uint64_t kNone = UINT64_MAX;

    std::uint64_t sent_limit_ = kNone;  // that the last frame named, unless it is to be sent again
    std::uint64_t counted_limit_ = kNone;
    std::uint64_t events_ = 0;
    Time since_ = kNever;
    Time blocked_ = 0;
};

}  // namespace quicgym::quic
