// Measures a run over intervals: its outcomes, and the columns of `info`.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/environment/capacity.hpp"
#include "sim/environment/fair_share.hpp"
#include "sim/environment/reward.hpp"
#include "sim/simulation.hpp"

namespace quicgym::environment {

// A copy continues with a copy of the run.
class Meter {
public:
    struct Settings {
        Time begin = 0;
        Time end = 0;               // of the time over whose mean capacity shares are taken
        std::vector<Time> marks{};  // rising; the totals of flows and short flows are kept at each of them
        bool records = false;       // keeps what every flow has received at the end of each interval
    };

    // Runs up to the begin. Throws std::invalid_argument for marks that do not rise or that have passed, and
    // for marks of a run that is no simulation.
    Meter(Watched& run, const Scenario& scenario, Settings settings);

    // Measures until `until`, which is later than now, in intervals of `interval`, the last of which may be
    // shorter. What is read below is of this time, unless it says otherwise.
    void run_until(Watched& run, Time until, Time interval = kNever);

    // From the beginning of the last run_until() to its end; 0 before the first.
    Time length() const { return length_; }
    // Means over the intervals, of all flows and of one.
    const MeanOutcome& mean() const { return mean_; }
    const MeanOutcome& mean(std::size_t flow) const { return flows_[flow].mean; }
    double capacity_rate() const { return capacity_rate_; }       // bytes per second
    std::uint64_t active_flows() const { return active_flows_; }  // when the last interval began
    const FlowState& state(std::size_t flow) const { return flows_[flow].state; }  // now
    bool active(std::size_t flow) const { return flows_[flow].active; }            // now
    // When it stops, or has had everything.
    Time end(std::size_t flow) const { return end_of(flows_[flow]); }

    // With `records`: the end of each interval since the begin, and per interval and flow the UDP payload
    // received so far.
    const std::vector<Time>& times() const { return times_; }
    const std::vector<std::uint64_t>& received_bytes() const { return received_bytes_; }
    // Throws std::out_of_range for a mark that was not reached.
    const FlowTotals& totals(std::size_t mark, std::size_t flow) const { return totals_.at(mark).at(flow); }
    const ShortFlowTotals& short_flow_totals(std::size_t mark, std::size_t entry) const {
        return short_flow_totals_.at(mark).at(entry);
    }
    // See Records::queue_occupancy_seconds, which throws the same.
    double queue_occupancy_seconds(std::size_t mark) const { return queue_occupancies_.at(mark); }

private:
    // A flow, and what it did.
    struct Follower {
        Time stop;
        bool goes_forward;  // over the bottleneck whose capacity is shared
        HopRange hops;
        FlowState state{};
        bool active = false;
        Outcome outcome{};  // of the last interval
        MeanOutcome mean{};
    };

    static Time end_of(const Follower& flow) { return std::min(flow.stop, flow.state.completion); }
    void advance(Watched& run, Time until);
    void measure(const Watched& run, Time from);
    void measure_flow(Follower& flow, const FlowState& now, double seconds);
    static void follow(Follower& flow, const FlowState& state, Time now);
    bool in_chain() const { return capacities_.size() > 1; }
    // Bytes per second that all hops together could have sent.
    double capacity_rate(Time from, Time to) const;
    void find_fair_rates();

    Settings settings_;
    std::vector<BottleneckCapacity> capacities_;  // of the hops
    std::vector<Follower> flows_;
    std::vector<HopRange> short_flow_hops_;
    std::vector<ShortFlowTotals> short_flows_;
    Outcome outcome_;  // of all flows, in the last interval
    MeanOutcome mean_;
    Time length_ = 0;
    double capacity_rate_ = 0.0;
    std::uint64_t active_flows_ = 0;
    // Bytes per second, from begin to end: what is carried is worth the same at any time, so that the
    // mean of the shares is all that was carried over all that could have been.
    std::vector<double> mean_hop_rates_;
    double mean_capacity_rate_ = 0.0;  // their sum
    // In a chain, the fairness among the forward flows that were active when the last interval began.
    MaxMinFairness fairness_;
    std::vector<HopRange> active_hops_;
    std::vector<double> fair_rates_;

    std::vector<Time> times_;
    std::vector<std::uint64_t> received_bytes_;
    std::vector<std::vector<FlowTotals>> totals_;                  // per mark and flow
    std::vector<std::vector<ShortFlowTotals>> short_flow_totals_;  // per mark and entry
    std::vector<double> queue_occupancies_;                        // per mark
};

// The source from which the columns of `info` are computed.
struct Reading {
    Reading(const Meter& meter, const Watched& run);
    void choose(std::size_t of_flow);

    const Meter& meter;
    const Watched& run;
    QueueSample queue{};  // before all hops
    Outcome total;
    std::size_t flow = 0;
    Outcome own{};  // of the flow
};

// A column of `info`, which has a row of numbers per agent and includes what only the network knows. Columns
// about the interval are NaN when the episode begins, because there has been no interval yet; its length is 0
// then.
struct InfoColumn {
    std::string_view name;
    std::string_view description;
    double (*value)(const Reading& reading);
};

// First the columns of the run, then those of the agent's flow.
extern const std::array<InfoColumn, 20> kInfoColumns;
inline constexpr std::size_t kRunColumns = 12;
inline constexpr std::size_t kStepColumn = 1;
inline constexpr std::size_t kActiveColumn = kRunColumns;

// Write the columns of the run, and those of the chosen flow; return where the next number goes.
double* write_run_columns(const Reading& reading, double* out);
double* write_flow_columns(const Reading& reading, double* out);

}  // namespace quicgym::environment
