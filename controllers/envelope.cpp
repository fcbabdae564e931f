#include "controllers/envelope.hpp"

#include <algorithm>

namespace quicgym {

namespace {

constexpr Time kRoundTripWindow = 10 * kSecond;
constexpr Time kShortestDeliveryWindow = kSecond;
constexpr Time kDeliveryWindowRoundTrips = 10;
constexpr std::uint64_t kFirstRounds = 2;

}  // namespace

Enveloped::Enveloped(std::unique_ptr<Controller> inner)
    : Decorator(std::move(inner)), largest_window_bytes_(2 * initial_window_bytes(max_datagram_bytes())) {
    publish();
}

void Enveloped::on_ack(const AckEvent& event) {
    const auto now = static_cast<std::uint64_t>(event.now);
    if (event.rtt > 0) round_trip_.update(event.rtt, now, static_cast<std::uint64_t>(kRoundTripWindow));
    const Time lowest_rtt = round_trip_.best();
    if (lowest_rtt != kNever) {
        const auto window = static_cast<std::uint64_t>(
            std::max(kShortestDeliveryWindow, kDeliveryWindowRoundTrips * lowest_rtt));
        // Samples that the application limits, or short ones, are true as well: they can only be too low.
        delivery_rate_.update(event.sample.delivery_rate, now, window);
        round_bytes_.update(static_cast<double>(event.sample.delivered_bytes), now, window);
        rounds_ += event.round_start ? 1 : 0;
        const double initial_bytes = static_cast<double>(initial_window_bytes(max_datagram_bytes_));
        const double bdp_bytes = delivery_rate_.best() * to_seconds(lowest_rtt);
        largest_window_bytes_ = static_cast<std::uint64_t>(
            std::max({rounds_ > kFirstRounds ? initial_bytes : 2.0 * initial_bytes, kEnvelopeBdps * bdp_bytes,
                      kEnvelopeGrowth * round_bytes_.best()}));
        highest_pacing_rate_ =
            kEnvelopeBdps * std::max(delivery_rate_.best(), initial_bytes / to_seconds(lowest_rtt));
    }
    Decorator::on_ack(event);
}

void Enveloped::publish() {
    window_bytes_ = std::min(inner().window_bytes(), largest_window_bytes_);
    pacing_rate_ = std::min(inner().pacing_rate(), highest_pacing_rate_);
}

}  // namespace quicgym
