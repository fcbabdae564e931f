#include "sim/environment/reward.hpp"

#include <limits>

namespace quicgym::environment {

namespace {

// Jay et al., "A Deep Reinforcement Learning Perspective on Internet Congestion Control", ICML 2019,
// section 4.1: packets per second, seconds, share of packets.
double aurora(const Outcome& outcome) {
    return 10.0 * outcome.packets_per_second - 1000.0 * outcome.rtt_seconds - 2000.0 * outcome.loss_rate;
}

// Abbasloo et al., "Classic Meets Modern: a Pragmatic Learning-Based Congestion Control for the
// Internet", SIGCOMM 2020, equations 1 and 2, normalised as there by the highest throughput so far over
// the minimum delay. A delay up to beta times the minimum counts as the minimum.
double orca(const Outcome& outcome) {
    constexpr double kLossWeight = 5.0;    // zeta
    constexpr double kDelayMargin = 1.25;  // beta
    if (outcome.max_packets_per_second <= 0.0) return 0.0;
    const double delay_ratio = outcome.rtt_ratio <= kDelayMargin ? 1.0 : outcome.rtt_ratio;
    return (outcome.packets_per_second - kLossWeight * outcome.drops_per_second) /
           (outcome.max_packets_per_second * delay_ratio);
}

}  // namespace

double reward(const RewardSettings& settings, const Outcome& outcome) {
    switch (settings.kind) {
        case RewardKind::fair_throughput:
            return outcome.throughput_share - settings.loss_weight * outcome.loss_rate -
                   settings.fairness_weight * (1.0 - outcome.jain);
        case RewardKind::delay:
            return outcome.throughput_share - settings.loss_weight * outcome.loss_rate -
                   settings.delay_weight * (outcome.rtt_ratio - 1.0);
        case RewardKind::power:
            // Kleinrock's power, throughput / delay, over its best value on this path.
            return outcome.throughput_share / outcome.rtt_ratio;
        case RewardKind::aurora:
            return aurora(outcome);
        case RewardKind::orca:
            return orca(outcome);
    }
    return 0.0;
}

void MeanOutcome::add(const Outcome& outcome, double seconds) {
    sum_.throughput += seconds * outcome.throughput;
    sum_.packets_per_second += seconds * outcome.packets_per_second;
    sum_.drops_per_second += seconds * outcome.drops_per_second;
    sum_.throughput_share += seconds * outcome.throughput_share;
    sum_.loss_rate += seconds * outcome.loss_rate;
    sum_.jain += seconds * outcome.jain;
    sum_.rtt_seconds += seconds * outcome.rtt_seconds;
    sum_.rtt_ratio += seconds * outcome.rtt_ratio;
    seconds_ += seconds;
    if (outcome.rtt_seconds > 0.0) seconds_with_rtt_ += seconds;
    last_ = outcome;
    ++count_;
}

Outcome MeanOutcome::value() const {
    if (count_ <= 1) return last_;
    return {.throughput = sum_.throughput / seconds_,
            .packets_per_second = sum_.packets_per_second / seconds_,
            .drops_per_second = sum_.drops_per_second / seconds_,
            .throughput_share = sum_.throughput_share / seconds_,
            .loss_rate = sum_.loss_rate / seconds_,
            .jain = sum_.jain / seconds_,
            .rtt_seconds = sum_.rtt_seconds / seconds_,
            .rtt_ratio = sum_.rtt_ratio / seconds_,
            .max_packets_per_second = last_.max_packets_per_second};
}

double MeanOutcome::rtt_seconds() const {
    if (!has_rtt()) return std::numeric_limits<double>::quiet_NaN();
    return count_ == 1 ? last_.rtt_seconds : sum_.rtt_seconds / seconds_with_rtt_;
}

}  // namespace quicgym::environment
