#include "controllers/envelope.hpp"

#include <algorithm>

namespace quicgym {

namespace {

constexpr Time kShortestPeriod = kSecond;
constexpr Time kPeriodRoundTrips = 10;
constexpr std::uint64_t kFirstRounds = 2;

}  // namespace

Enveloped::Enveloped(std::unique_ptr<Controller> inner)
    : Decorator(std::move(inner)),
      headroom_(kEnvelopeBdps),
      largest_window_bytes_(2 * initial_window_bytes(max_datagram_bytes())) {
    publish();
}

void Enveloped::on_ack(const AckEvent& event) {
    delivered_bytes_ += event.newly_acked_bytes;
    if (event.rtt > 0) lowest_rtt_ = std::min(lowest_rtt_, event.rtt);
    if (lowest_rtt_ != kNever) {
        const Time period = std::max(kShortestPeriod, kPeriodRoundTrips * lowest_rtt_);
        judge_losses(event.now, period);
        const auto now = static_cast<std::uint64_t>(event.now);
        const auto window = static_cast<std::uint64_t>(period);
        // Samples that the application limits, or short ones, are true as well: they can only be too low.
        delivery_rate_.update(event.sample.delivery_rate, now, window);
        round_bytes_.update(static_cast<double>(event.sample.delivered_bytes), now, window);
        rounds_ += event.round_start ? 1 : 0;
        const double initial_bytes = static_cast<double>(initial_window_bytes(max_datagram_bytes_));
        const double bdp_bytes = delivery_rate_.best() * to_seconds(lowest_rtt_);
        largest_window_bytes_ = static_cast<std::uint64_t>(std::max(
            {rounds_ > kFirstRounds ? initial_bytes * headroom_ / kEnvelopeBdps : 2.0 * initial_bytes,
             headroom_ * bdp_bytes, std::min(headroom_, kEnvelopeGrowth) * round_bytes_.best()}));
        highest_pacing_rate_ =
            kEnvelopeBdps * std::max(delivery_rate_.best(), initial_bytes / to_seconds(lowest_rtt_));
    }
    Decorator::on_ack(event);
}

void Enveloped::on_loss(const LossEvent& event) {
    lost_bytes_ += event.lost_bytes;
    Decorator::on_loss(event);
}

void Enveloped::judge_losses(Time now, Time period) {
    if (now - period_start_ < period) return;
    const auto lost = static_cast<double>(lost_bytes_);
    const bool heavy = lost > kEnvelopeLoss * (lost + static_cast<double>(delivered_bytes_));
    if (!heavy) headroom_ = std::min(kEnvelopeBdps, kEnvelopeGrowth * headroom_);
    if (heavy && heavy_loss_) headroom_ = 1.0;
    heavy_loss_ = heavy;
    period_start_ = now;
    delivered_bytes_ = lost_bytes_ = 0;
}

void Enveloped::publish() {
    window_bytes_ = std::min(inner().window_bytes(), largest_window_bytes_);
    pacing_rate_ = std::min(inner().pacing_rate(), highest_pacing_rate_);
}

}  // namespace quicgym
