#include "sim/environment/recorded_run.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace quicgym::environment {

namespace {

void between(std::uint64_t& total, std::uint64_t later, double share) {
    total += static_cast<std::uint64_t>(std::llround(static_cast<double>(later - total) * share));
}

}  // namespace

RecordedRun::RecordedRun(Time interval, std::vector<std::vector<FlowState>> flows,
                         std::vector<std::vector<QueueSample>> queues)
    : interval_(interval),
      flows_(std::move(flows)),
      queues_(std::move(queues)),
      rows_(flows_.empty() ? 0 : flows_.front().size()) {
    if (interval_ <= 0 || rows_ == 0)
        throw std::invalid_argument("a recorded run needs an interval and rows");
    for (const auto& flow : flows_) {
        if (flow.size() != rows_) throw std::invalid_argument("all flows must have the same number of rows");
    }
    for (const auto& queue : queues_) {
        if (queue.size() != rows_) throw std::invalid_argument("all queues must have as many rows as flows");
    }
}

void RecordedRun::run_until(Time until) {
    if (until < now_) throw std::invalid_argument("the time has passed already");
    if (until > static_cast<Time>(rows_ - 1) * interval_)
        throw std::invalid_argument(std::to_string(until) + " ns is after the last row");
    now_ = until;
}

FlowState RecordedRun::state(std::size_t flow) const {
    const std::vector<FlowState>& rows = flows_.at(flow);
    const std::size_t first = row();
    FlowState state = rows[first];
    state.sample.time = now_;
    const Time past = now_ - static_cast<Time>(first) * interval_;
    if (past == 0) return state;
    const FlowState& later = rows[first + 1];
    const double share = static_cast<double>(past) / static_cast<double>(interval_);
    between(state.sample.sent_bytes, later.sample.sent_bytes, share);
    between(state.sample.delivered_bytes, later.sample.delivered_bytes, share);
    between(state.sample.lost_bytes, later.sample.lost_bytes, share);
    between(state.sample.received_bytes, later.sample.received_bytes, share);
    between(state.received_packets, later.received_packets, share);
    between(state.dropped_packets, later.dropped_packets, share);
    between(state.rtt_samples, later.rtt_samples, share);
    state.rtt_sum_seconds += share * (later.rtt_sum_seconds - state.rtt_sum_seconds);
    if (state.min_rtt == 0) state.min_rtt = later.min_rtt;
    return state;
}

QueueSample RecordedRun::queue(std::size_t hop) const {
    QueueSample sample = queues_.at(hop)[row()];
    sample.time = now_;
    return sample;
}

QueueSample RecordedRun::access_queue(std::size_t) const {
    return {now_, 0, 0};
}

}  // namespace quicgym::environment
