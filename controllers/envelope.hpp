// The safe envelope: window and pacing rate of an agent's controller, bounded by what the connection has
// recently delivered.
#pragma once

#include <functional>
#include <limits>

#include "controllers/decorator.hpp"
#include "controllers/windowed_extreme.hpp"

namespace quicgym {

// The window is at most the largest of
//   - the initial window, and twice that in the first two rounds, in which slow start doubles it; after heavy
//     losses a quarter of it, for paths that hold less, and as much more as the headroom has grown,
//   - the headroom times the highest delivery rate of late times the lowest RTT of the connection,
//   - the headroom, but at most kEnvelopeGrowth, times the most that was delivered of late from the sending
//     of a packet to its acknowledgement: a flow may take its part of a deep queue that others fill, and
//     gets there in steps.
// The headroom is kEnvelopeBdps: a slow start doubles what is in flight in a round, BBR's Startup has 2.885
// BDPs. After two periods in a row in which more than kEnvelopeLoss of the data was lost it is 1, so that
// what the path dropped is not sent again and again; one such period ends a Startup. Each period with less
// loss lets it grow by kEnvelopeGrowth.
// The pacing rate is at most kEnvelopeBdps times the larger of that delivery rate and the initial window per
// lowest RTT; it has no bound before the first RTT sample.
//
// A period, and "of late", is a second, or ten of the lowest RTTs where these are longer. An RTT that rises
// for good, on another route, is one of the third bound: the lowest one never forgets.
class Enveloped final : public Decorator {
public:
    explicit Enveloped(std::unique_ptr<Controller> inner);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Enveloped>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;

private:
    void publish() override;
    void judge_losses(Time now, Time period);

    WindowedExtreme<double, std::greater<>> delivery_rate_{0.0};  // bytes per second
    WindowedExtreme<double, std::greater<>> round_bytes_{0.0};
    Time lowest_rtt_ = kNever;
    double headroom_;
    Time period_start_ = 0;
    std::uint64_t delivered_bytes_ = 0;  // in the period
    std::uint64_t lost_bytes_ = 0;
    bool heavy_loss_ = false;  // in the period before
    std::uint64_t rounds_ = 0;
    std::uint64_t largest_window_bytes_;
    double highest_pacing_rate_ = std::numeric_limits<double>::infinity();
};

inline constexpr double kEnvelopeBdps = 4.0;
inline constexpr double kEnvelopeGrowth = 1.25;
inline constexpr double kEnvelopeLoss = 0.1;

}  // namespace quicgym
