// One direction of the bottleneck whose queue is in the hands of a discipline. A discipline may decide when a
// packet leaves, so this link has events, where a drop-tail link computes a departure at the arrival.
//
// Like an ns-3 device with a queue disc: the device holds one packet besides the one that it transmits. The
// discipline hands it out when the packet before it begins its transmission.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "sim/base/time.hpp"
#include "sim/base/time_integral.hpp"
#include "sim/base/value_pointer.hpp"
#include "sim/net/link.hpp"
#include "sim/net/queues/discipline.hpp"
#include "sim/net/transmitter.hpp"
#include "sim/net/wire.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::net {

class ManagedLink {
public:
    ManagedLink(const Link& link, std::unique_ptr<QueueDiscipline> discipline, Wire wire)
        : transmitter_(link),
          wire_(std::move(wire)),
          discipline_(std::move(discipline)),
          limit_in_packets_(link.queue_unit == QueueUnit::packets) {}

    struct Departure {
        QueuedPacket packet;
        bool lost;  // on the wire
        Transit transit;
    };

    // Packets must be offered in the order in which they arrive. `depart` is called with every packet whose
    // transmission starts before, `drop` with every one that the discipline drops.
    template <class Depart, class Drop>
    void offer(const Transit& arriving, const QueuedPacket& packet, Depart depart, Drop drop) {
        for (;;) {
            if (woken_at_ != kNever) {
                // Packets that arrive at the same instant come before the discipline is asked for the next.
                if (woken_at_ >= arriving.arrival) break;
                wake(drop);
            } else {
                const bool started = next_start_ < arriving.arrival ||
                                     (next_start_ == arriving.arrival && trigger_ < arriving.scheduled);
                if (!started) break;
                start_transmission(depart);
            }
        }
        discipline_->enqueue(packet);
        report(drop);
        if (!holds_next_ && woken_at_ == kNever) {
            const bool idle = free_at_ < arriving.arrival ||
                              (free_at_ == arriving.arrival && last_start_ < arriving.scheduled);
            take_next(arriving.arrival, idle, drop);
            if (idle && next_start_ == arriving.arrival) start_transmission(depart);
        }
        update_occupancy(arriving.arrival);
    }

    // Everything before `end` happens; the arrivals before it must have been offered.
    template <class Depart, class Drop>
    void advance(Time end, Depart depart, Drop drop) {
        for (;;) {
            if (woken_at_ < end) {
                wake(drop);
            } else if (next_start_ < end) {
                start_transmission(depart);
            } else {
                break;
            }
        }
    }

    // When the next transmission starts of the packets that were offered; kNever: there is none.
    Time next_start() const { return next_start_; }

    // The packets that wait, in the discipline or as the next one, without the one being transmitted.
    QueueSample waiting(Time now) const {
        return {now, discipline_->packets() + holds_next_,
                discipline_->bytes() + discipline_->packets() * kFramingBytes +
                    (holds_next_ ? next_.bytes + kFramingBytes : 0)};
    }

    // The integral over time, up to `now`, of what waits, in the unit of the queue's limit.
    double occupancy_seconds(Time now) const { return occupancy_.until(now); }

private:
    // The device has room again, because the packet that it held is on its way.
    template <class Drop>
    void wake(Drop drop) {
        const Time now = woken_at_;
        woken_at_ = kNever;
        take_next(now, false, drop);
        update_occupancy(now);
    }

    template <class Drop>
    void take_next(Time now, bool idle, Drop drop) {
        holds_next_ = discipline_->dequeue(now, next_);
        report(drop);
        if (!holds_next_) return;
        const Time ready = idle ? now : free_at_;
        const auto [start, finish] = transmitter_.next(ready, next_.bytes + kFramingBytes, !idle);
        trigger_ = start > ready || idle ? ready : last_start_;
        next_start_ = start;
        next_finish_ = finish;
    }

    template <class Depart>
    void start_transmission(Depart depart) {
        const Time now = next_start_;
        last_start_ = now;
        free_at_ = next_finish_;
        next_start_ = kNever;
        holds_next_ = false;
        woken_at_ = now;
        update_occupancy(now);
        const auto [arrival, lost] = wire_.pass(now, free_at_);
        depart(Departure{next_, lost, {arrival, now}});
    }

    template <class Drop>
    void report(Drop drop) {
        if (discipline_->dropped().empty()) return;
        for (const QueuedPacket& packet : discipline_->dropped()) drop(packet);
        discipline_->dropped().clear();
    }

    void update_occupancy(Time now) {
        occupancy_.set(now, limit_in_packets_
                                ? discipline_->packets() + holds_next_
                                : discipline_->bytes() + (holds_next_ ? next_.bytes + kFramingBytes : 0));
    }

    Transmitter transmitter_;
    Wire wire_;
    ValuePointer<QueueDiscipline> discipline_;
    bool limit_in_packets_;

    Time free_at_ = 0;
    Time last_start_ = -1;

    QueuedPacket next_{};
    bool holds_next_ = false;
    Time next_start_ = kNever;
    Time next_finish_ = kNever;
    Time trigger_ = kNever;   // when its start was scheduled, as drop-tail's Waiting has it
    Time woken_at_ = kNever;  // when the device will ask for another packet

    TimeIntegral occupancy_;
};

}  // namespace quicgym::net
