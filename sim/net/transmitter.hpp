// When a link transmits: at a rate that may change or be 0 for a while, in bursts, as a shaper lets it, or at
// the opportunities of a mahimahi trace. The ns-3 host asks the same class, so that both engines agree on
// every nanosecond.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/net/token_bucket.hpp"
#include "sim/scenario.hpp"

namespace quicgym::net {

// The time that `wire_bytes` take at the rate, rounded as ns-3's DataRate does it.
inline Time transmission_time(std::uint64_t wire_bytes, std::uint64_t rate_bits_per_second) {
    if (rate_bits_per_second == 0) throw std::invalid_argument("a link's rate must be above 0");
    // ns-3 divides in 64.64 fixed point, truncates, multiplies by 10^9 and rounds to nearest.
    using Wide = unsigned __int128;
    const Wide seconds = (static_cast<Wide>(wire_bytes * 8) << 64) / rate_bits_per_second;
    const Wide whole = (seconds >> 64) * 1'000'000'000U;
    const Wide fraction = (seconds & UINT64_MAX) * 1'000'000'000U;
    const Wide half = Wide{1} << 63;
    return static_cast<Time>(whole + ((fraction + half) >> 64));
}

// Remembers transmission times: a flow sends packets of few sizes.
class TransmissionTimes {
public:
    void set_rate(std::uint64_t rate_bits_per_second) {
        rate_bits_per_second_ = rate_bits_per_second;
        for (auto& entry : entries_) entry.wire_bytes = 0;
    }

    std::uint64_t rate_bits_per_second() const { return rate_bits_per_second_; }

    Time operator()(std::uint64_t wire_bytes) {
        Entry& entry = entries_[wire_bytes % kEntries];
        if (entry.wire_bytes != wire_bytes) compute(entry, wire_bytes);
        return entry.time;
    }

private:
    static constexpr std::size_t kEntries = 16;
    struct Entry {
        std::uint64_t wire_bytes = 0;
        Time time = 0;
    };
    // Not inlined: a division of 128 bits, for few packets.
    [[gnu::cold, gnu::noinline]] void compute(Entry& entry, std::uint64_t wire_bytes) const {
        entry = {wire_bytes, transmission_time(wire_bytes, rate_bits_per_second_)};
    }
    std::uint64_t rate_bits_per_second_ = 0;
    std::array<Entry, kEntries> entries_;
};

// The rate of the link for a queue discipline; for a trace it is the mean rate.
inline std::uint64_t nominal_rate_bits_per_second(const Link& link) {
    const std::vector<std::uint32_t>& times_ms = link.delivery_opportunities_ms;
    if (times_ms.empty()) return link.rate_bits_per_second;
    return times_ms.size() * kOpportunityBytes * 8 * 1000 / times_ms.back();
}

class Transmitter {
public:
    explicit Transmitter(const Link& link)
        : rate_schedule_(link.rate_schedule),
          opens_every_(link.opens_every),
          opportunities_ms_(link.delivery_opportunities_ms),
          has_fixed_rate_(rate_schedule_.empty() && opens_every_ == 0 && opportunities_ms_.empty() &&
                          !link.shaper) {
        times_.set_rate(link.rate_bits_per_second);
        if (link.shaper) shaper_.emplace(*link.shaper);
    }

    // Whether a packet of this link may have to wait though nothing is before it.
    static bool pauses(const Link& link) {
        return link.opens_every > 0 || link.shaper || !link.delivery_opportunities_ms.empty() ||
               std::any_of(link.rate_schedule.begin(), link.rate_schedule.end(),
                           [](const RateStep& step) { return step.rate_bits_per_second == 0; });
    }

    struct Transmission {
        Time start;
        Time finish;
    };

    // The transmission of the next packet, which is the first in the queue from `ready` on. `continues` says
    // that the transmission before it ends then and this packet waited for it. kNever: the link stays silent.
    Transmission next(Time ready, std::uint64_t wire_bytes, bool continues) {
        if (has_fixed_rate_) return {ready, ready + times_(wire_bytes)};
        return next_by_schedule(ready, wire_bytes, continues);
    }

private:
    Transmission next_by_schedule(Time ready, std::uint64_t wire_bytes, bool continues) {
        if (ready == kNever) return {kNever, kNever};
        if (!opportunities_ms_.empty()) {
            const Time departure = departure_by_trace(ready, wire_bytes);
            return {departure, departure};
        }
        Time start = continues ? ready : next_opening(ready);
        if (shaper_) start = shaper_->admission(start, wire_bytes);
        if (start == kNever) return {kNever, kNever};
        take_rate_steps(start);
        while (times_.rate_bits_per_second() == 0) {
            if (next_rate_step_ == rate_schedule_.size()) return {kNever, kNever};
            start = next_opening(rate_schedule_[next_rate_step_].at);
            take_rate_steps(start);
        }
        if (shaper_) shaper_->admits(start, wire_bytes);
        return {start, start + times_(wire_bytes)};
    }

    Time next_opening(Time time) const {
        return opens_every_ == 0 ? time : (time + opens_every_ - 1) / opens_every_ * opens_every_;
    }

    void take_rate_steps(Time until) {
        while (next_rate_step_ < rate_schedule_.size() && rate_schedule_[next_rate_step_].at <= until) {
            times_.set_rate(rate_schedule_[next_rate_step_++].rate_bits_per_second);
        }
    }

    // Like mahimahi: an opportunity carries up to 1500 bytes, of several packets or of a part of one.
    // The trace repeats, with its last time as period.
    Time departure_by_trace(Time ready, std::uint64_t wire_bytes) {
        const Time period = opportunities_ms_.back() * kMillisecond;
        const auto time_of = [&](std::uint64_t index) {
            const auto round = static_cast<Time>(index / opportunities_ms_.size());
            return round * period + opportunities_ms_[index % opportunities_ms_.size()] * kMillisecond;
        };
        // Opportunities that passed while nothing waited are gone.
        while (time_of(opportunity_) < ready) {
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

    TransmissionTimes times_;
    std::vector<RateStep> rate_schedule_;
    std::size_t next_rate_step_ = 0;
    Time opens_every_;  // 0: never closed
    std::vector<std::uint32_t> opportunities_ms_;
    std::uint64_t opportunity_ = 0;
    std::uint64_t opportunity_bytes_left_ = kOpportunityBytes;
    std::optional<TokenBucket> shaper_;
    bool has_fixed_rate_;
};

}  // namespace quicgym::net
