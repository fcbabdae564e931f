// Drops and queueing delay at a bottleneck, by flow.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/simulation.hpp"

namespace quicgym::ns3_host {

class FlowCounters {
public:
    struct Counters {
        std::uint64_t dropped_packets = 0;
        DelayHistogram queue_delays{};

        // Those of several bottlenecks, before the delays become seconds.
        Counters& operator+=(const Counters& other) {
            dropped_packets += other.dropped_packets;
            queue_delays += other.queue_delays;
            return *this;
        }
        void add_to(FlowTotals& totals) const {
            totals.statistics.dropped_packets += dropped_packets;
            totals.statistics.queue_samples += queue_delays.count();
            totals.statistics.queue_delay_sum_seconds += queue_delays.sum_seconds();
            totals.queue_delays = queue_delays.buckets();
            totals.statistics.set_queue_delays(totals.queue_delays);
        }
    };

    explicit FlowCounters(std::size_t flow_count) : flows_(flow_count) {}

    std::size_t flow_count() const { return flows_.size(); }
    void count_drop(std::size_t flow) { ++flows_[flow].dropped_packets; }
    void count_queue_delay(std::size_t flow, Time delay) { flows_[flow].queue_delays.add(delay); }
    const Counters& of(std::size_t flow) const { return flows_[flow]; }

private:
    std::vector<Counters> flows_;
};

}  // namespace quicgym::ns3_host
