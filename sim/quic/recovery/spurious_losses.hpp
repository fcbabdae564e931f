// Losses that were none: packets that arrive after they were declared lost.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/quic/frames.hpp"
#include "sim/quic/range_set.hpp"

namespace quicgym::quic {

// Remembers the numbers of lost packets, not their records, which are forgotten with the loss, and as many
// runs of them as a receiver can report. Watches the latest recovery period (RFC 9002 7.3.2) as a whole, too.
class SpuriousLosses {
public:
    struct Arrived {
        std::uint64_t packets = 0;      // that had been declared lost
        bool completes_period = false;  // nothing that the latest period declared lost is missing any more
    };

    // Numbers rise. True where a recovery period begins.
    bool on_lost(Time now, std::uint64_t packet_number, Time sent_time) {
        lost_.insert(packet_number, packet_number + 1);
        end_ = packet_number + 1;
        const bool begins = sent_time > period_start_;
        if (begins) {
            period_start_ = now;
            period_first_ = packet_number;
            missing_ = 0;
        }
        ++missing_;
        return begins;
    }

    // A quick test, because most frames acknowledge no packet that was declared lost.
    bool may_be_in(const AckFrame& ack) const { return end_ > ack.ranges[ack.range_count - 1].smallest; }

    Arrived on_ack(const AckFrame& ack) {
        Arrived arrived;
        std::size_t below = lost_.ranges().size();  // so many runs may still be in a range of the frame
        for (std::size_t i = 0; i < ack.range_count; ++i) {
            const AckRange& range = ack.ranges[i];
            while (below > 0 && lost_.ranges()[below - 1].begin > range.largest) --below;
            if (below == 0) break;
            if (lost_.ranges()[below - 1].end <= range.smallest) continue;
            take(range.smallest, range.largest + 1, arrived);
            below = lost_.ranges().size();
        }
        return arrived;
    }
    Arrived on_arrival(std::uint64_t packet_number) {
        Arrived arrived;
        take(packet_number, packet_number + 1, arrived);
        return arrived;
    }

private:
    void take(std::uint64_t begin, std::uint64_t end, Arrived& arrived) {
        const std::uint64_t of_period = lost_.erase(std::max(begin, period_first_), end);
        arrived.packets += of_period + lost_.erase(begin, std::min(end, period_first_));
        missing_ -= of_period;
        arrived.completes_period = arrived.completes_period || (of_period > 0 && missing_ == 0);
    }

    RangeSet lost_{kMaxAckRanges};
    std::uint64_t end_ = 0;           // of the latest run
    std::uint64_t period_first_ = 0;  // the first loss of the period
    std::uint64_t missing_ = 0;       // of its losses
    Time period_start_ = -1;          // before every packet
};

}  // namespace quicgym::quic
