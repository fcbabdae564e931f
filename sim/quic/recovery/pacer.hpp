// Pacing: when the next packet may leave.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/time.hpp"

namespace quicgym::quic {

class Pacer {
public:
    // `burst_packets` may leave back to back, as segmentation offload sends them.
    explicit Pacer(std::uint64_t burst_packets) : burst_packets_(burst_packets) {}

    // The first `unpaced_bytes` leave as fast as the window lets them.
    void start(Time now, std::uint64_t unpaced_bytes) {
        next_send_ = now;
        unpaced_bytes_ = unpaced_bytes;
    }
    Time next_send() const { return next_send_; }
    bool may_send(Time now) const { return next_send_ <= now || (now == burst_begin_ && burst_left_ > 0); }

    // A packet takes the time that its bytes last at the rate, in bytes per second.
    void on_packet_sent(Time now, std::uint64_t bytes, double rate) {
        if (unpaced_bytes_ > 0) [[unlikely]] {
            unpaced_bytes_ -= std::min(unpaced_bytes_, bytes);
            return;
        }
        if (rate != rate_) {
            rate_ = rate;
            ns_per_byte_ = 1e9 / rate;
        }
        if (burst_packets_ > 1) [[unlikely]]
            continue_burst(now);
        next_send_ =
            std::max(next_send_, now) + static_cast<Time>(static_cast<double>(bytes) * ns_per_byte_ + 0.5);
    }

private:
    void continue_burst(Time now) {
        if (now != burst_begin_) burst_left_ = burst_packets_;
        burst_begin_ = now;
        burst_left_ -= std::min<std::uint64_t>(burst_left_, 1);
    }

    std::uint64_t burst_packets_;
    std::uint64_t burst_left_ = 0;
    Time burst_begin_ = -1;
    Time next_send_ = 0;
    std::uint64_t unpaced_bytes_ = 0;
    double rate_ = 0.0;  // the one behind ns_per_byte_
    double ns_per_byte_ = 0.0;
};

}  // namespace quicgym::quic
