// The safe envelope: window and pacing rate of an agent's controller, bounded by what the connection has
// recently delivered.
#pragma once

#include <functional>
#include <limits>

#include "controllers/decorator.hpp"
#include "controllers/windowed_extreme.hpp"

namespace quicgym {

// The window is at most the largest of
//   - the initial window, and twice that in the first two rounds, in which slow start doubles it,
//   - kEnvelopeBdps times the highest delivery rate times the lowest RTT of late: a slow start doubles what
//   is
//     in flight in a round, and BBR's Startup has 2.885 BDPs,
//   - kEnvelopeGrowth times the most that was delivered from the sending of a packet to its acknowledgement.
//     So a flow may take its part of a deep queue that others fill, and gets there in steps.
// The pacing rate is at most kEnvelopeBdps times the larger of that delivery rate and the initial window per
// lowest RTT; it has no bound before the first RTT sample.
//
// "Of late": a second, or ten of the lowest RTTs where these are longer; the lowest RTT is that of
// the last 10 s.
class Enveloped final : public Decorator {
public:
    explicit Enveloped(std::unique_ptr<Controller> inner);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Enveloped>(*this); }

    void on_ack(const AckEvent& event) override;

private:
    void publish() override;

    WindowedExtreme<double, std::greater<>> delivery_rate_{0.0};  // bytes per second
    WindowedExtreme<double, std::greater<>> round_bytes_{0.0};
    WindowedExtreme<Time, std::less<>> round_trip_{kNever};
    std::uint64_t rounds_ = 0;
    std::uint64_t largest_window_bytes_;
    double highest_pacing_rate_ = std::numeric_limits<double>::infinity();
};

inline constexpr double kEnvelopeBdps = 4.0;
inline constexpr double kEnvelopeGrowth = 1.25;

}  // namespace quicgym
