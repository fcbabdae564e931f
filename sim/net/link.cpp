#include "sim/net/link.hpp"

#include <utility>

namespace quicgym::net {

BottleneckLink::BottleneckLink(const Link& link, Wire wire)
    : transmitter_(link),
      wire_(std::move(wire)),
      queue_limit_(link.queue_limit),
      limit_in_packets_(link.queue_unit == QueueUnit::packets) {}

// Which of the waiting packets have left when this one arrives. A transmission that starts in the very
// nanosecond of the arrival counts as started when it was scheduled before the arrival was.
void BottleneckLink::leave_before(const Transit& arriving) {
    while (head_ != tail_) {
        const Waiting& oldest = waiting_[head_];
        const bool started = oldest.start < arriving.arrival ||
                             (oldest.start == arriving.arrival && oldest.trigger < arriving.scheduled);
        if (!started) break;
        waiting_bytes_ -= oldest.wire_bytes;
        ++head_;
    }
}

QueueSample BottleneckLink::waiting(Time now) const {
    QueueSample sample{now, tail_ - head_, waiting_bytes_};
    for (std::uint64_t i = head_; i != tail_; ++i) {
        const Waiting& packet = waiting_[i];
        if (packet.start > now) break;
        --sample.packets;
        sample.bytes -= packet.wire_bytes;
    }
    return sample;
}

void BottleneckLink::push_waiting(const Waiting& waiting) {
    waiting_.make_room(head_, tail_);
    waiting_[tail_++] = waiting;
    waiting_bytes_ += waiting.wire_bytes;
}

BottleneckLink::Outcome BottleneckLink::offer(const Transit& arriving, std::uint64_t wire_bytes,
                                              std::uint32_t flow) {
    leave_before(arriving);
    const std::uint64_t limited = limit_in_packets_ ? tail_ - head_ + 1 : waiting_bytes_ + wire_bytes;
    if (limited > queue_limit_) return {true, false, 0, {}};

    const Time arrival = arriving.arrival;
    const bool idle = free_at_ < arrival || (free_at_ == arrival && last_start_ < arriving.scheduled);
    const Time ready = idle ? arrival : free_at_;
    const auto [start, finish] = transmitter_.next(ready, wire_bytes, !idle);
    if (!idle || start > ready) {
        occupancy_sum_ +=
            static_cast<unsigned __int128>(amount(wire_bytes)) * static_cast<std::uint64_t>(start - arrival);
        push_waiting({start, start > ready ? ready : last_start_, arrival,
                      static_cast<std::uint32_t>(wire_bytes), flow});
    }
    last_start_ = start;
    free_at_ = finish;
    if (start == kNever) return {false, false, 0, kNoTransit};
    const auto [off_wire, lost] = wire_.pass(start, finish);
    return {false, lost, start - arrival, {off_wire, start}};
}

double BottleneckLink::occupancy_seconds(Time now) const {
    unsigned __int128 ahead = 0;  // the part of the waits that is still to come
    for (std::uint64_t i = head_; i != tail_; ++i) {
        const Waiting& packet = waiting_[i];
        if (packet.start <= now) continue;
        ahead += static_cast<unsigned __int128>(amount(packet.wire_bytes)) *
                 static_cast<std::uint64_t>(packet.start - now);
    }
    return static_cast<double>(occupancy_sum_ - ahead) * 1e-9;
}

}  // namespace quicgym::net
