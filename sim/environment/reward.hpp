// Rewards: what happened between two decisions over a set of flows, and the number that it is worth.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace quicgym::environment {

// The terms. Rates count bytes on the wire, headers included, so that a busy link has a share of 1.
struct Outcome {
    double throughput = 0.0;        // bytes per second that reached the receivers
    double throughput_share = 0.0;  // of the bottleneck's capacity
    double loss_rate = 0.0;         // packets that the network lost / (those + received), 0 without any
    double jain = 1.0;              // over the flows' throughputs; 1 while all of them are 0
    double rtt_seconds =
        0.0;  // mean of the senders' samples; without new ones the last mean, 0 before the first
    double rtt_ratio = 1.0;  // mean of sample / that flow's minimum
    double power = 0.0;      // Kleinrock's, throughput / delay, over its best value on this path
};

enum class RewardKind : std::uint8_t { fair_throughput, delay, power };

struct RewardName {
    std::string_view name;
    RewardKind kind;
};

inline constexpr std::array<RewardName, 3> kRewardNames{{
    {"fair-throughput", RewardKind::fair_throughput},
    {"delay", RewardKind::delay},
    {"power", RewardKind::power},
}};

struct RewardSettings {
    RewardKind kind = RewardKind::fair_throughput;
    double loss_weight = 5.0;
    double fairness_weight = 1.0;
    double delay_weight = 1.0;

    bool operator==(const RewardSettings&) const = default;
};

double reward(const RewardSettings& settings, const Outcome& outcome);

// The mean of outcomes over the time that each lasted.
class MeanOutcome {
public:
    void add(const Outcome& outcome, double seconds);
    // One outcome is its own mean to the last bit.
    Outcome value() const;
    // Over the outcomes after the first RTT sample; NaN without one.
    double rtt_seconds() const;
    double rtt_ratio() const;
    bool has_outcomes() const { return count_ > 0; }
    bool has_rtt() const { return seconds_with_rtt_ > 0.0; }

private:
    Outcome last_;
    Outcome sum_{.jain = 0.0, .rtt_ratio = 0.0};
    double seconds_ = 0.0;
    double seconds_with_rtt_ = 0.0;
    double ratio_with_rtt_ = 0.0;  // sum of ratio * seconds since the first RTT sample
    std::uint64_t count_ = 0;
};

}  // namespace quicgym::environment
