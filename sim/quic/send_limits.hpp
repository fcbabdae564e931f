// How often a sender had data and no room for it: in its send buffer, or in the peer's flow control.
#pragma once

#include <cstdint>

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

// DATA_BLOCKED frames (RFC 9000 4.1): one for each limit at which the sender is blocked, and again when that
// one may be lost.
class DataBlocked {
public:
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
};

}  // namespace quicgym::quic
