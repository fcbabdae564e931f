// A run that has happened elsewhere, such as over real sockets: a meter over it measures what it would have
// measured in a simulation.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/simulation.hpp"

namespace quicgym::environment {

class RecordedRun final : public Watched {
public:
    // Rows of each flow at 0, interval, 2 · interval, …; of each hop the same of its queue. Throws
    // std::invalid_argument where flows or hops differ in their number of rows, or there is none.
    RecordedRun(Time interval, std::vector<std::vector<FlowState>> flows,
                std::vector<std::vector<QueueSample>> queues);

    Time now() const override { return now_; }
    void run_until(Time until) override;
    std::size_t flow_count() const override { return flows_.size(); }
    // Totals are taken as rising evenly between two rows.
    FlowState state(std::size_t flow) const override;
    std::size_t hop_count() const override { return queues_.size(); }
    QueueSample queue(std::size_t hop) const override;
    // Empty: what a host holds back is not recorded.
    QueueSample access_queue(std::size_t flow) const override;

private:
    std::size_t row() const { return static_cast<std::size_t>(now_ / interval_); }

    Time interval_;
    std::vector<std::vector<FlowState>> flows_;
    std::vector<std::vector<QueueSample>> queues_;
    std::size_t rows_;
    Time now_ = 0;
};

}  // namespace quicgym::environment
