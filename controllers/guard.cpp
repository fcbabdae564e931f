#include "controllers/guard.hpp"

#include <algorithm>

#include "controllers/window_pacing.hpp"

namespace quicgym {

namespace {

constexpr Time kShortestPeriod = 10 * kSecond;
constexpr Time kPeriodRoundTrips = 100;
constexpr double kCalm = 1.1;
constexpr Time kCalmSlack = kMillisecond;

}  // namespace

Guarded::Guarded(std::unique_ptr<Controller> inner)
    : Decorator(std::move(inner)), wait_rounds_(kGuardRounds) {
    publish();
}

void Guarded::on_ack(const AckEvent& event) {
    if (event.rtt > 0) {
        lowest_rtt_ = std::min(lowest_rtt_, event.rtt);
        round_rtt_ = std::min(round_rtt_, event.rtt);
        const auto now = static_cast<std::uint64_t>(event.now);
        const auto period =
            static_cast<std::uint64_t>(std::max(kShortestPeriod, kPeriodRoundTrips * lowest_rtt_));
        rtt_.update(event.rtt, now, period);
        delivery_rate_.update(event.sample.delivery_rate, now, period);
    }
    if (event.round_start && round_rtt_ != kNever) judge_round(event.sample.app_limited);
    Decorator::on_ack(event);
}

void Guarded::on_loss(const LossEvent& event) {
    has_lost_ = true;
    Decorator::on_loss(event);
}

void Guarded::judge_round(bool app_limited) {
    const double best_bytes = delivery_rate_.best() * to_seconds(rtt_.best());
    const Time calm_rtt = static_cast<Time>(kCalm * static_cast<double>(rtt_.best())) + kCalmSlack;
    const bool is_calm = round_rtt_ <= calm_rtt && !has_lost_ && !app_limited;
    const bool is_low = static_cast<double>(inner().window_bytes()) < kGuardLow * best_bytes;
    round_rtt_ = kNever;
    has_lost_ = false;
    if (floor_bytes_ > 0.0) {
        if (is_calm && is_low) {
            floor_bytes_ = std::min(2.0 * floor_bytes_, kGuardShare * best_bytes);
            return;
        }
        floor_bytes_ = 0.0;
        wait_rounds_ = is_calm ? kGuardRounds : std::min(2 * wait_rounds_, kGuardMostRounds);
        low_rounds_ = 0;
    } else {
        low_rounds_ = is_calm && is_low ? low_rounds_ + 1 : 0;
        if (low_rounds_ >= wait_rounds_) floor_bytes_ = static_cast<double>(inner().window_bytes());
    }
}

void Guarded::publish() {
    window_bytes_ = std::max(inner().window_bytes(), static_cast<std::uint64_t>(floor_bytes_));
    pacing_rate_ = inner().pacing_rate();
    if (floor_bytes_ > 0.0)
        pacing_rate_ = std::max(pacing_rate_, kPacingGain * floor_bytes_ / to_seconds(rtt_.best()));
}

}  // namespace quicgym
