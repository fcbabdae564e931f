// Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation-02) and packet-timed rounds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "controllers/controller.hpp"
#include "sim/base/time.hpp"
#include "sim/quic/recovery/sent_packets.hpp"

namespace quicgym::quic {

class DeliveryRate {
public:
    // `keeps_interval`: where the newest packet of an ACK frame left after as much was delivered as an
    // earlier one's, the sample takes the interval of that frame, which is shorter. The rate comes out too
    // high.
    explicit DeliveryRate(bool keeps_interval) : keeps_interval_(keeps_interval) {}

    std::uint64_t delivered_bytes() const { return delivered_; }
    // Both until all that was in flight at the last such moment is delivered.
    bool app_limited() const { return app_limited_until_ != 0; }
    bool window_unused() const { return window_unused_until_ != 0; }

    void start(Time now) { delivered_time_ = first_sent_time_ = now; }

    // Notes in the packet's record what its acknowledgement's sample needs. `in_flight_bytes` counts the
    // packet, `lost_bytes` all that was declared lost so far.
    void on_packet_sent(Time now, std::uint64_t in_flight_bytes, std::uint64_t lost_bytes,
                        SentPacket& packet) {
        // Section 3.2: a flight that starts from nothing starts its own clock.
        if (in_flight_bytes == packet.size_bytes) first_sent_time_ = delivered_time_ = now;
        packet.first_sent_time = first_sent_time_;
        packet.delivered_time = delivered_time_;
        packet.delivered_bytes = delivered_;
        packet.lost_bytes = lost_bytes;
        packet.in_flight_bytes = in_flight_bytes;
        packet.app_limited = app_limited();
    }

    // Section 3.3, for an ACK frame that newly acknowledges so many bytes, of which `newest` was sent last.
    // The caller adds the bytes that the frame shows to be lost.
    RateSample on_acked(Time now, const SentPacket& newest, std::uint64_t acked_bytes, Time min_rtt) {
        delivered_ += acked_bytes;
        if (app_limited_until_ != 0 && delivered_ > app_limited_until_) app_limited_until_ = 0;
        if (window_unused_until_ != 0 && delivered_ > window_unused_until_) window_unused_until_ = 0;
        RateSample sample;
        sample.app_limited = newest.app_limited;
        sample.delivered_bytes = delivered_ - newest.delivered_bytes;
        sample.in_flight_at_send_bytes = newest.in_flight_bytes;
        const Time send_elapsed = newest.sent_time - newest.first_sent_time;
        const Time ack_elapsed = now - newest.delivered_time;
        sample.interval = std::max(send_elapsed, ack_elapsed);
        if (keeps_interval_) [[unlikely]]
            return with_kept_interval(now, newest, sample);
        // Shorter than a round trip: the ACKs were compressed and the sample would be too high.
        if (sample.interval >= min_rtt && sample.interval > 0) {
            sample.delivery_rate =
                static_cast<double>(sample.delivered_bytes) * 1e9 / static_cast<double>(sample.interval);
        }
        first_sent_time_ = newest.sent_time;
        delivered_time_ = now;
        return sample;
    }

    // Whether that ACK frame begins a round: what it acknowledges was sent after the last round began.
    bool begins_round(const SentPacket& newest) {
        if (newest.delivered_bytes < next_round_delivered_) return false;
        next_round_delivered_ = delivered_;
        return true;
    }

    // Section 3.4: the application, not the network, leaves the window unused.
    void mark_app_limited(std::uint64_t in_flight_bytes) {
        mark_window_unused(in_flight_bytes);
        app_limited_until_ = window_unused_until_;
    }

    // RFC 9002 7.8: the application or the peer's flow control does.
    void mark_window_unused(std::uint64_t in_flight_bytes) {
        window_unused_until_ = std::max<std::uint64_t>(delivered_ + in_flight_bytes, 1);
    }

private:
    [[gnu::cold, gnu::noinline]] RateSample with_kept_interval(Time now, const SentPacket& newest,
                                                               RateSample sample) {
        if (newest.delivered_bytes > kept_delivered_) {
            kept_delivered_ = newest.delivered_bytes;
            kept_interval_ = sample.interval;
            first_sent_time_ = newest.sent_time;
        }
        delivered_time_ = now;
        sample.interval = kept_interval_;
        sample.delivered_bytes = delivered_ - kept_delivered_;
        if (kept_interval_ > 0) {
            sample.delivery_rate =
                static_cast<double>(sample.delivered_bytes) * 1e9 / static_cast<double>(kept_interval_);
        }
        return sample;
    }

    std::uint64_t delivered_ = 0;
    Time delivered_time_ = 0;
    Time first_sent_time_ = 0;
    std::uint64_t app_limited_until_ = 0;  // 0: not application-limited
    std::uint64_t window_unused_until_ = 0;
    std::uint64_t next_round_delivered_ = 0;
    bool keeps_interval_;
    std::uint64_t kept_delivered_ = 0;
    Time kept_interval_ = 0;
};

}  // namespace quicgym::quic
