// RFC 9002 section 5: RTT estimation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "controllers/controller.hpp"
#include "sim/base/time.hpp"

namespace quicgym::quic {

inline constexpr Time kMaxAckDelay = 25 * kMillisecond;  // RFC 9000 18.2, max_ack_delay
inline constexpr Time kGranularity = kMillisecond;       // RFC 9002 6.1.2

class RttEstimator {
public:
    RttEstimator() = default;
    explicit RttEstimator(Time peers_max_ack_delay) : max_ack_delay_(peers_max_ack_delay) {}

    // Takes a sample and returns it less the peer's ACK delay where 5.3 allows that.
    Time update(Time latest, Time ack_delay) {
        latest_ = latest;
        if (!has_sample_) {
            has_sample_ = true;
            min_ = latest;
            smoothed_ = latest;
            variation_ = latest / 2;
            return latest;
        }
        min_ = std::min(min_, latest);
        ack_delay = std::min(ack_delay, max_ack_delay_);
        const Time adjusted = latest >= min_ + ack_delay ? latest - ack_delay : latest;
        const Time difference = smoothed_ > adjusted ? smoothed_ - adjusted : adjusted - smoothed_;
        variation_ = (3 * variation_ + difference) / 4;
        smoothed_ = (7 * smoothed_ + adjusted) / 8;
        return adjusted;
    }

    // RFC 9002 5.2: after persistent congestion the path may have changed.
    void restart_minimum() { min_ = latest_; }

    bool has_sample() const { return has_sample_; }
    Time latest() const { return latest_; }
    Time smoothed() const { return smoothed_; }
    Time minimum() const { return min_; }
    Time max_ack_delay() const { return max_ack_delay_; }  // the peer's

    // RFC 9002 6.2.1, doubled with every timeout in a row. The handshake's acknowledgements are not delayed.
    Time probe_timeout(Time max_ack_delay, std::uint32_t timeouts) const {
        return (smoothed_ + std::max(4 * variation_, kGranularity) + max_ack_delay)
               << std::min(timeouts, kMaxBackoff);
    }

    // RFC 9002 6.1.2.
    Time loss_delay() const { return std::max(std::max(smoothed_, latest_) / 8 * 9, kGranularity); }

    // RFC 9002 7.6.1, threshold 3.
    Time persistent_congestion_duration() const { return 3 * probe_timeout(max_ack_delay_, 0); }

private:
    static constexpr std::uint32_t kMaxBackoff = 20;  // days: beyond any simulation, short of overflow

    Time max_ack_delay_ = kMaxAckDelay;
    bool has_sample_ = false;
    Time latest_ = 0;
    Time min_ = 0;
    Time smoothed_ = kInitialRtt;
    Time variation_ = kInitialRtt / 2;
};

}  // namespace quicgym::quic
