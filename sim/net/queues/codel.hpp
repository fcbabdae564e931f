// CoDel, RFC 8289: drops at the head of the queue while packets have waited for more than a target during a
// whole interval, the n-th drop 1/sqrt(n) of an interval after the one before it.
//
// Equal to ns-3's CoDelQueueDisc, which departs from the RFC: times are counted in units of 1.024 µs, the
// root is a Newton step in 16 bits, and the time of the drop that follows a mark is counted from the mark.
//
// With a CE threshold it is that disc with UseL4s: an L4S packet that comes to the head is marked where it
// has waited longer than that, and otherwise nobody looks at it.
#pragma once

#include <cstdint>

#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

// The state of CoDel for one queue.
class CoDelControl {
public:
    explicit CoDelControl(const Link& link) : ce_threshold_(ticks(link.ce_threshold)) {}

    // Takes the next packet out of the queue, past those that are dropped; false: the queue is empty.
    // `mark` tries to mark a packet instead; `drop` is told of each that goes.
    template <class Mark, class Drop>
    bool dequeue(PacketFifo& queue, Time now, QueuedPacket& packet, Mark mark, Drop drop) {
        if (queue.empty()) {
            dropping_ = false;
            return false;
        }
        packet = queue.pop();
        if (ce_threshold_ > 0 && is_l4s(packet.ecn)) {
            if (ticks(now - packet.arrival) > ce_threshold_) mark(packet);
            return true;
        }
        const bool above = is_above_target(queue, packet, now);
        // Packets dropped are never the last ones: a queue of less than a full packet is not above target.
        const auto drop_and_take_next = [&] {
            drop(packet);
            packet = queue.pop();
            return is_above_target(queue, packet, now);
        };
        if (!dropping_) {
            if (!above) return true;
            if (!mark(packet)) drop_and_take_next();
            begin_dropping(now);
            return true;
        }
        if (!above) {
            dropping_ = false;
            return true;
        }
        while (dropping_ && ticks(now) >= next_drop_) {
            ++count_;
            improve_root();
            if (mark(packet)) {
                next_drop_ = after_interval(ticks(now));
                break;
            }
            dropping_ = drop_and_take_next();
            if (dropping_) next_drop_ = after_interval(next_drop_);
        }
        return true;
    }

private:
    using Ticks = std::uint64_t;  // 1.024 µs; ns-3's 32 bits are full after 73 minutes

    static Ticks ticks(Time time) { return static_cast<Ticks>(time >> 10); }

    static constexpr Ticks kTarget = 5 * kMillisecond >> 10;      // RFC 8289, section 4.3
    static constexpr Ticks kInterval = 100 * kMillisecond >> 10;  // RFC 8289, section 4.2
    static constexpr std::uint64_t kFullPacketBytes = 1500;
    static constexpr std::uint16_t kRootOfOne = 0xffff;

    // RFC 8289, section 5.6, dodequeue: whether the sojourn time has been above the target for an interval.
    bool is_above_target(const PacketFifo& queue, const QueuedPacket& packet, Time now) {
        if (ticks(now - packet.arrival) < kTarget || queue.bytes() < kFullPacketBytes) {
            first_above_ = 0;
            return false;
        }
        if (first_above_ == 0) {
            first_above_ = ticks(now) + kInterval;
            return false;
        }
        return ticks(now) > first_above_;
    }

    // RFC 8289, section 5.5: a rate of drops that was right a short while ago is a good one to start from.
    void begin_dropping(Time now) {
        dropping_ = true;
        const auto since_last = static_cast<std::int32_t>(count_ - last_count_);
        if (since_last > 1 && ticks(now) - next_drop_ < 16 * kInterval) {
            count_ = static_cast<std::uint32_t>(since_last);
            improve_root();
        } else {
            count_ = 1;
            inverse_root_ = kRootOfOne;
        }
        last_count_ = count_;
        next_drop_ = after_interval(ticks(now));
    }

    // One step of Newton's method towards 1 / sqrt(count), a fraction of 16 bits.
    void improve_root() {
        const std::uint64_t root = std::uint64_t{inverse_root_} << 16;
        const std::uint64_t squared = (root * root) >> 32;
        const std::uint64_t correction = ((std::uint64_t{3} << 32) - count_ * squared) >> 2;
        inverse_root_ = static_cast<std::uint16_t>(((correction * root) >> 31) >> 16);
    }

    Ticks after_interval(Ticks from) const {
        return from +
               static_cast<Ticks>((std::uint64_t{kInterval} * (std::uint64_t{inverse_root_} << 16)) >> 32);
    }

    Ticks ce_threshold_;  // 0: none
    bool dropping_ = false;
    std::uint16_t inverse_root_ = kRootOfOne;
    std::uint32_t count_ = 0;
    std::uint32_t last_count_ = 0;
    Ticks first_above_ = 0;  // an interval after the delay rose above the target; 0: it is below
    Ticks next_drop_ = 0;
};

class CoDel final : public QueueDiscipline {
public:
    explicit CoDel(const DisciplineSettings& settings)
        : QueueDiscipline(settings.link), control_(settings.link) {}
    std::unique_ptr<QueueDiscipline> clone() const override { return std::make_unique<CoDel>(*this); }

    void enqueue(QueuedPacket packet) override;
    bool dequeue(Time now, QueuedPacket& packet) override;

private:
    PacketFifo queue_;
    CoDelControl control_;
};

}  // namespace quicgym::net
