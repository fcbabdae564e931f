#include "sim/environment/reward.hpp"

#include <limits>

namespace quicgym::environment {

double reward(const RewardSettings& settings, const Outcome& outcome) {
    switch (settings.kind) {
        case RewardKind::fair_throughput:
            return outcome.throughput_share - settings.loss_weight * outcome.loss_rate -
                   settings.fairness_weight * (1.0 - outcome.jain);
        case RewardKind::delay:
            return outcome.throughput_share - settings.loss_weight * outcome.loss_rate -
                   settings.delay_weight * (outcome.rtt_ratio - 1.0);
        case RewardKind::power:
            return outcome.power;
    }
    return 0.0;
}

void MeanOutcome::add(const Outcome& outcome, double seconds) {
    sum_.throughput += seconds * outcome.throughput;
    sum_.throughput_share += seconds * outcome.throughput_share;
    sum_.loss_rate += seconds * outcome.loss_rate;
    sum_.jain += seconds * outcome.jain;
    sum_.rtt_seconds += seconds * outcome.rtt_seconds;
    sum_.rtt_ratio += seconds * outcome.rtt_ratio;
    sum_.power += seconds * outcome.power;
    seconds_ += seconds;
    if (outcome.rtt_seconds > 0.0) {
        seconds_with_rtt_ += seconds;
        ratio_with_rtt_ += seconds * outcome.rtt_ratio;
    }
    last_ = outcome;
    ++count_;
}

Outcome MeanOutcome::value() const {
    if (count_ <= 1) return last_;
    return {.throughput = sum_.throughput / seconds_,
            .throughput_share = sum_.throughput_share / seconds_,
            .loss_rate = sum_.loss_rate / seconds_,
            .jain = sum_.jain / seconds_,
            .rtt_seconds = sum_.rtt_seconds / seconds_,
            .rtt_ratio = sum_.rtt_ratio / seconds_,
            .power = sum_.power / seconds_};
}

double MeanOutcome::rtt_seconds() const {
    if (!has_rtt()) return std::numeric_limits<double>::quiet_NaN();
    return count_ == 1 ? last_.rtt_seconds : sum_.rtt_seconds / seconds_with_rtt_;
}

double MeanOutcome::rtt_ratio() const {
    if (!has_rtt()) return std::numeric_limits<double>::quiet_NaN();
    return count_ == 1 ? last_.rtt_ratio : ratio_with_rtt_ / seconds_with_rtt_;
}

}  // namespace quicgym::environment
