// What one sender did, event by event, for qlog files (envs/simulation/qlog.py writes them). Kept only where
// somebody asks for it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/fields.hpp"
#include "sim/base/time.hpp"

namespace quicgym::quic {

// The values that follow the kind, in this order; the rest is 0. Sizes are bytes of UDP payload, times ns.
enum class SenderEventKind : std::uint64_t {
    packet_sent = 0,      // number, size, stream offset, stream bytes, flags
    packet_received = 1,  // number, size, flags; what its ACK frame has follows
    ack_delay = 2,        // of an ACK frame, in ns; its ranges follow
    acked_range = 3,      // smallest and largest number
    packet_lost = 4,      // number, size, 0: by the packet threshold, 1: by the time threshold
    metrics = 5,  // window, in flight, smoothed, latest and least RTT, pacing rate in bytes per second
    mode = 6,     // ControllerMode
};
inline constexpr std::uint64_t kInitialFlag = 1;  // an Initial packet
inline constexpr std::uint64_t kAckElicitingFlag = 2;
inline constexpr std::uint64_t kFinFlag = 4;    // the stream ends with it
inline constexpr std::uint64_t kBurstFlag = 8;  // of the bursts' own stream

struct SenderEvent {
    Time time;
    SenderEventKind kind;
    std::array<std::uint64_t, 6> values;

    QUICGYM_FIELDS(SenderEvent, time, kind, values)
};

class EventLog {
public:
    void add(Time time, SenderEventKind kind, const std::array<std::uint64_t, 6>& values) {
        events_.push_back({time, kind, values});
    }
    // The same, unless the latest of this kind has the same values.
    void add_change(Time time, SenderEventKind kind, const std::array<std::uint64_t, 6>& values) {
        Latest& latest = latest_[static_cast<std::size_t>(kind)];
        if (latest.is_there && latest.values == values) return;
        latest = {true, values};
        add(time, kind, values);
    }
    const std::vector<SenderEvent>& events() const { return events_; }

private:
    struct Latest {
        bool is_there = false;
        std::array<std::uint64_t, 6> values{};
    };
    std::vector<SenderEvent> events_;
    std::array<Latest, 7> latest_{};
};

}  // namespace quicgym::quic
