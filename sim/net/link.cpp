#include "sim/net/link.hpp"

#include <stdexcept>

namespace quicgym::net {

namespace {

constexpr std::uint64_t kOpportunityBytes = 1500;

}  // namespace

Time transmission_time(std::uint64_t wire_bytes, std::uint64_t rate_bits_per_second) {
    if (rate_bits_per_second == 0) throw std::invalid_argument("a link's rate must be above 0");
    // ns-3 divides in 64.64 fixed point, truncates, multiplies by 10^9 and rounds to nearest.
    using Wide = unsigned __int128;
    const Wide seconds = (static_cast<Wide>(wire_bytes * 8) << 64) / rate_bits_per_second;
    const Wide whole = (seconds >> 64) * 1'000'000'000U;
    const Wide fraction = (seconds & UINT64_MAX) * 1'000'000'000U;
    const Wide half = Wide{1} << 63;
    return static_cast<Time>(whole + ((fraction + half) >> 64));
}

BottleneckLink::BottleneckLink(const Link& link, Random loss_random)
    : delay_(link.delay),
      queue_limit_(link.queue_limit),
      limit_in_packets_(link.queue_unit == QueueUnit::packets),
      loss_(link.loss, loss_random),
      rate_schedule_(link.rate_schedule),
      opportunities_ms_(link.delivery_opportunities_ms) {
    times_.set_rate(link.rate_bits_per_second);
    if (!opportunities_ms_.empty()) opportunity_bytes_left_ = kOpportunityBytes;
}

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

QueueSample BottleneckLink::waiting_at(Time now) const {
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

    Time start = arriving.arrival;
    Time finish = 0;
    const auto wait_until = [&](Time departure) {
        start = departure;
        occupancy_sum_ += static_cast<unsigned __int128>(amount(wire_bytes)) *
                          static_cast<std::uint64_t>(start - arriving.arrival);
        push_waiting({start, last_start_, arriving.arrival, static_cast<std::uint32_t>(wire_bytes), flow});
    };
    if (!opportunities_ms_.empty()) {
        finish = finish_by_trace(start, wire_bytes);
        if (finish > start) wait_until(finish);
    } else {
        const bool idle = free_at_ < start || (free_at_ == start && last_start_ < arriving.scheduled);
        if (!idle) wait_until(free_at_);
        finish = finish_transmission(start, wire_bytes);
    }
    last_start_ = start;
    free_at_ = finish;
    const bool lost = loss_.active() && loss_.lose_next();
    return {false, lost, start - arriving.arrival, {finish + delay_, start}};
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

Time BottleneckLink::finish_transmission(Time start, std::uint64_t wire_bytes) {
    while (next_rate_step_ < rate_schedule_.size() && rate_schedule_[next_rate_step_].at <= start) {
        times_.set_rate(rate_schedule_[next_rate_step_++].rate_bits_per_second);
    }
    return start + times_(wire_bytes);
}

Time BottleneckLink::finish_by_trace(Time arrival, std::uint64_t wire_bytes) {
    const Time period = opportunities_ms_.back() * kMillisecond;
    const auto time_of = [&](std::uint64_t index) {
        const auto round = static_cast<Time>(index / opportunities_ms_.size());
        return round * period + opportunities_ms_[index % opportunities_ms_.size()] * kMillisecond;
    };
    // Opportunities that passed while nothing waited are gone.
    while (time_of(opportunity_) < arrival) {
        ++opportunity_;
        opportunity_bytes_left_ = kOpportunityBytes;
    }
    for (std::uint64_t missing = wire_bytes;;) {
        if (opportunity_bytes_left_ == 0) {
            ++opportunity_;
            opportunity_bytes_left_ = kOpportunityBytes;
        }
        const std::uint64_t carried = std::min(missing, opportunity_bytes_left_);
        opportunity_bytes_left_ -= carried;
        missing -= carried;
        if (missing == 0) return time_of(opportunity_);
    }
}

}  // namespace quicgym::net
