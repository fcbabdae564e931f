// Pacing: when the next packet may leave.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/time.hpp"

namespace quicgym::quic {

class Pacer {
public:
    // The first `unpaced_bytes` leave as fast as the window lets them.
    void start(Time now, std::uint64_t unpaced_bytes) {
        next_send_ = now;
        unpaced_bytes_ = unpaced_bytes;
    }
    Time next_send() const { return next_send_; }

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
        next_send_ =
            std::max(next_send_, now) + static_cast<Time>(static_cast<double>(bytes) * ns_per_byte_ + 0.5);
    }

private:
    Time next_send_ = 0;
    std::uint64_t unpaced_bytes_ = 0;
    double rate_ = 0.0;  // the one behind ns_per_byte_
    double ns_per_byte_ = 0.0;
};

}  // namespace quicgym::quic
