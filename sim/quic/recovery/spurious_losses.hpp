// Whether losses were none: packets that arrive after they were declared lost.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/quic/frames.hpp"

namespace quicgym::quic {

// Watches the losses of one recovery period (RFC 9002 7.3.2), the latest. Numbers, not records, because
// records are forgotten with the loss; a period with more losses than kept here does not count as reordering.
class SpuriousLosses {
public:
    void on_lost(Time now, std::uint64_t packet_number, Time sent_time) {
        if (sent_time > period_start_) {
            period_start_ = now;
            count_ = arrived_ = 0;
        }
        if (count_ < numbers_.size()) numbers_[count_] = packet_number;
        ++count_;
    }

    // True with the frame that acknowledges the last of them.
    bool on_ack(const AckFrame& ack) {
        if (arrived_ == count_ || count_ > numbers_.size()) return false;
        while (arrived_ < count_ && acknowledges(ack, numbers_[arrived_])) ++arrived_;
        return arrived_ == count_;
    }

    // The same, told of a packet that arrives although it was declared lost. Not beside on_ack.
    bool on_arrival(std::uint64_t packet_number) {
        if (count_ > numbers_.size()) return false;
        const auto begin = numbers_.begin();
        const auto waited_for = begin + static_cast<std::ptrdiff_t>(arrived_);
        const auto end = begin + static_cast<std::ptrdiff_t>(count_);
        const auto found = std::find(waited_for, end, packet_number);
        if (found == end) return false;
        std::iter_swap(waited_for, found);
        return ++arrived_ == count_;
    }

private:
    static bool acknowledges(const AckFrame& ack, std::uint64_t packet_number) {
        // Of a real loss: receivers soon leave out the ranges below it.
        if (packet_number < ack.ranges[ack.range_count - 1].smallest) return false;
        const auto end = ack.ranges.begin() + static_cast<std::ptrdiff_t>(ack.range_count);
        const auto range = std::partition_point(
            ack.ranges.begin(), end, [&](const AckRange& newer) { return newer.smallest > packet_number; });
        return range != end && range->largest >= packet_number;
    }

    std::array<std::uint64_t, 64> numbers_{};
    std::size_t count_ = 0;
    std::size_t arrived_ = 0;  // the first so many
    Time period_start_ = -1;   // before every packet
};

}  // namespace quicgym::quic
