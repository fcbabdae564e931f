// The guard: a floor under the window of an agent that leaves a path empty.
#pragma once

#include <functional>

#include "controllers/decorator.hpp"
#include "controllers/windowed_extreme.hpp"

namespace quicgym {

// The path's recent best is the highest delivery rate times the lowest RTT of the last 10 s, or of 100 of the
// connection's lowest RTTs where these are longer. A round is calm where its lowest RTT is at most a tenth
// and a millisecond above that RTT, nothing was lost, and the application did not limit the flow.
//
// After kGuardRounds calm rounds in a row in which the agent's window is below kGuardLow of the recent best,
// a floor begins at that window. Each further calm round doubles the floor, up to kGuardShare of the recent
// best. The pacing rate sends the floor in four fifths of the RTT. A round that is not calm takes the floor
// away, and doubles the number of rounds until the next attempt, up to kGuardMostRounds. An agent that rises
// by itself takes the floor away as well, and the number is kGuardRounds again.
class Guarded final : public Decorator {
public:
    explicit Guarded(std::unique_ptr<Controller> inner);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Guarded>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;

private:
    void publish() override;
    void judge_round(bool app_limited);

    WindowedExtreme<double, std::greater<>> delivery_rate_{0.0};  // bytes per second
    WindowedExtreme<Time, std::less<>> rtt_{kNever};
    Time lowest_rtt_ = kNever;
    Time round_rtt_ = kNever;  // the lowest one of the round
    bool has_lost_ = false;    // in the round
    double floor_bytes_ = 0.0;
    int low_rounds_ = 0;
    int wait_rounds_;
};

inline constexpr double kGuardLow = 0.5;
inline constexpr double kGuardShare = 0.7;
inline constexpr int kGuardRounds = 10;
inline constexpr int kGuardMostRounds = 640;

}  // namespace quicgym
