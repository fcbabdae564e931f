// RFC 9000 section 13.2: which packets to acknowledge, and when.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/quic/frames.hpp"
#include "sim/quic/range_set.hpp"
#include "sim/quic/recovery/rtt_estimator.hpp"
#include "sim/scenario.hpp"

namespace quicgym::quic {

class AckTracker {
public:
    // Acknowledges as often as RFC 9000 recommends.
    AckTracker() = default;
    // Acknowledges as often as the scenario asks of the flow's receiver.
    explicit AckTracker(const Flow& flow)
        : ack_eliciting_threshold_(flow.ack_eliciting_threshold),
          max_ack_delay_(flow.max_ack_delay),
          ignores_order_(flow.reordering_threshold == 0) {}

    std::uint64_t expected_packet_number() const {
        return received_.empty() ? 0 : received_.ranges().back().end;
    }

    bool is_new(std::uint64_t packet_number) const {
        return packet_number >= expected_packet_number() ||
               (packet_number >= forgotten_below_ && !received_.contains(packet_number));
    }

    // Records a packet for which is_new() holds.
    void on_packet(std::uint64_t packet_number, Time now, bool ack_eliciting, Ecn ecn) {
        const std::uint64_t expected = expected_packet_number();
        if (packet_number >= expected) largest_time_ = now;
        const std::uint64_t lowest = expected > 0 ? received_.ranges().front().begin : UINT64_MAX;
        received_.insert(packet_number, packet_number + 1);
        if (received_.ranges().front().begin > lowest) [[unlikely]]
            forgotten_below_ = received_.ranges().front().begin;
        if (packet_number < expected) report_from(packet_number);
        if (ecn != Ecn::not_ect) count(ecn);
        if (!ack_eliciting) return;
        ++unacknowledged_;
        // 13.2.1: at once on reordering, on a gap and on ECN-CE; 13.2.2: every second packet.
        if ((packet_number != expected && !ignores_order_) || ecn == Ecn::ce ||
            unacknowledged_ > ack_eliciting_threshold_) {
            deadline_ = now;
        } else if (unacknowledged_ == 1) {
            deadline_ = now + max_ack_delay_;
        }
    }

    // When an ACK must leave at the latest; kNever when nothing waits for one.
    Time deadline() const { return deadline_; }
    bool pending() const { return unacknowledged_ > 0; }

    // Writes as many of the newest ranges as fit and leaves `reserve` bytes free behind them. A range is
    // left out once kRangeRepeats frames have carried it: a receiver of data sends hardly anything
    // that is acknowledged itself, so it cannot wait to hear that its peer knows (13.2.4). Without
    // `settles`, packets that wait for an ACK continue to wait.
    void write(Writer& writer, Time now, std::size_t reserve, bool settles = true) {
        const auto& ranges = received_.ranges();
        const bool with_ecn = ecn_.ect_0 + ecn_.ect_1 + ecn_.ce > 0;
        std::size_t room = writer.room() - reserve;
        if (with_ecn) room -= varint_bytes(ecn_.ect_0) + varint_bytes(ecn_.ect_1) + varint_bytes(ecn_.ce);

        const Range& newest = ranges.back();
        const std::uint64_t delay =
            static_cast<std::uint64_t>((now - largest_time_) / kMicrosecond) >> kAckDelayExponent;
        std::size_t used = 2 + varint_bytes(newest.end - 1) + varint_bytes(delay) +
                           varint_bytes(newest.end - newest.begin - 1);
        std::size_t further = 0;
        std::uint64_t& reported = reported_[frame_count_++ % kRangeRepeats];
        for (std::size_t i = ranges.size() - 1;
             i > 0 && ranges[i - 1].end > reported && further + 1 < kMaxAckRanges; --i, ++further) {
            used += varint_bytes(ranges[i].begin - ranges[i - 1].end - 1) +
                    varint_bytes(ranges[i - 1].end - ranges[i - 1].begin - 1);
            if (used > room) break;
        }

        reported = newest.begin;

        writer.byte(with_ecn ? frame_type::ack_ecn : frame_type::ack);
        writer.varint(newest.end - 1);
        writer.varint(delay);
        writer.varint(further);
        writer.varint(newest.end - newest.begin - 1);
        for (std::size_t i = ranges.size() - 1; further > 0; --i, --further) {
            writer.varint(ranges[i].begin - ranges[i - 1].end - 1);
            writer.varint(ranges[i - 1].end - ranges[i - 1].begin - 1);
        }
        if (with_ecn) {
            writer.varint(ecn_.ect_0);
            writer.varint(ecn_.ect_1);
            writer.varint(ecn_.ce);
        }
        if (!settles) return;
        unacknowledged_ = 0;
        deadline_ = kNever;
    }

private:
    static constexpr std::size_t kRangeRepeats = 8;

    // The range of this packet has changed: it goes into further frames, and so do those above it.
    void report_from(std::uint64_t packet_number) {
        for (std::uint64_t& reported : reported_) reported = std::min(reported, packet_number);
    }

    void count(Ecn ecn) {
        if (ecn == Ecn::ect_0) ++ecn_.ect_0;
        if (ecn == Ecn::ect_1) ++ecn_.ect_1;
        if (ecn == Ecn::ce) ++ecn_.ce;
    }

    // 13.2.3: old ranges are forgotten; a packet below them would be dropped as a duplicate.
    RangeSet received_{kMaxAckRanges};
    std::uint64_t forgotten_below_ = 0;
    Time largest_time_ = 0;
    Time deadline_ = kNever;
    std::uint64_t unacknowledged_ = 0;
    std::uint64_t ack_eliciting_threshold_ = 1;
    Time max_ack_delay_ = kMaxAckDelay;
    bool ignores_order_ = false;
    // Where the newest range began in each of the last frames: what ended before had been reported.
    std::array<std::uint64_t, kRangeRepeats> reported_{};
    std::uint64_t frame_count_ = 0;
    EcnCounts ecn_;
};

}  // namespace quicgym::quic
