// The wire delays a packet after its transmission, and may lose it. The ns-3 host uses the same class, so
// that both engines draw the same random numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/base/time.hpp"
#include "sim/net/loss.hpp"
#include "sim/scenario.hpp"

namespace quicgym::net {

// A delay on top of the propagation, drawn for every packet.
class JitterProcess {
public:
    JitterProcess(const Jitter& jitter, Random random) : jitter_(jitter), random_(random) {}

    // Draws as many numbers whatever the outcome.
    Time next() {
        switch (jitter_.kind) {
            case JitterKind::none:
                return 0;
            case JitterKind::uniform:
                return static_cast<Time>(random_.below(static_cast<std::uint64_t>(jitter_.max) + 1));
            case JitterKind::normal: {
                // Box and Muller 1958; 1 - u lies in (0, 1].
                const double radius = std::sqrt(-2.0 * std::log(1.0 - random_.uniform()));
                const double normal = radius * std::cos(2.0 * std::numbers::pi * random_.uniform());
                const double drawn =
                    static_cast<double>(jitter_.mean) + static_cast<double>(jitter_.deviation) * normal;
                return std::max<Time>(0, std::llround(drawn));
            }
        }
        return 0;
    }

private:
    Jitter jitter_;
    Random random_;
};

class Wire {
public:
    Wire(const Link& link, Random loss_random, Random jitter_random)
        : delay_(link.delay),
          has_fixed_delay_(link.delay_schedule.empty() && link.jitter.kind == JitterKind::none),
          loss_(link, loss_random),
          delay_schedule_(link.delay_schedule),
          jitter_(link.jitter, jitter_random),
          reordering_(link.reordering) {}

    struct Passage {
        Time arrival;
        bool lost;  // at its arrival
    };

    // The passage of a packet with this transmission. Packets must come in the order of their transmissions.
    Passage pass(Time start, Time finish) {
        const Time arrival = has_fixed_delay_ ? finish + delay_ : arrival_by_schedule(start, finish);
        return {arrival, loss_.active() && loss_.lose_next(start)};
    }

private:
    Time arrival_by_schedule(Time start, Time finish) {
        while (next_delay_step_ < delay_schedule_.size() && delay_schedule_[next_delay_step_].at <= start) {
            delay_ = delay_schedule_[next_delay_step_++].delay;
        }
        const Time arrival = finish + delay_ + jitter_.next();
        if (reordering_) return arrival;
        return latest_arrival_ = std::max(latest_arrival_, arrival);
    }

    Time delay_;
    bool has_fixed_delay_;
    LossProcess loss_;
    std::vector<DelayStep> delay_schedule_;
    std::size_t next_delay_step_ = 0;
    JitterProcess jitter_;
    Time latest_arrival_ = 0;
    bool reordering_;
};

// No packet is on the link's wire for less.
inline Time shortest_delay(const Link& link) {
    Time shortest = link.delay;
    for (const DelayStep& step : link.delay_schedule) shortest = std::min(shortest, step.delay);
    for (const Reroute& reroute : link.reroutes) shortest = std::min(shortest, reroute.delay);
    return shortest;
}

// The wire of the path that packets take after so many reroutes.
inline Wire wire_of_hop(const Scenario& scenario, DataDirection direction, std::size_t hop,
                        std::uint64_t seed, std::size_t reroutes = 0) {
    const bool is_forward = direction == DataDirection::forward;
    const std::uint64_t stream = hop + kMaxHops * reroutes;
    const Random loss(seed, is_forward ? RandomPurpose::forward_loss : RandomPurpose::reverse_loss, stream);
    const Random jitter(seed, is_forward ? RandomPurpose::forward_jitter : RandomPurpose::reverse_jitter,
                        stream);
    const Link& link = link_of_hop(scenario, direction, hop);
    return reroutes == 0 ? Wire(link, loss, jitter) : Wire(path_of(link, reroutes), loss, jitter);
}

}  // namespace quicgym::net
