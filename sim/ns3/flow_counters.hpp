// Drops and queueing delay at a bottleneck, by flow.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/simulation.hpp"

namespace quicgym::ns3_host {

class FlowCounters {
public:
    explicit FlowCounters(std::size_t flow_count) : flows_(flow_count) {}

    std::size_t flow_count() const { return flows_.size(); }
    void count_drop(std::size_t flow) { ++flows_[flow].dropped_packets; }
    void count_queue_delay(std::size_t flow, Time delay) {
        ++flows_[flow].queue_samples;
        flows_[flow].queue_delay_sum += delay;
    }
    void add_statistics(std::size_t flow, FlowStatistics& statistics) const {
        statistics.dropped_packets += flows_[flow].dropped_packets;
        statistics.queue_samples += flows_[flow].queue_samples;
        statistics.queue_delay_sum_seconds += to_seconds(flows_[flow].queue_delay_sum);
    }

private:
    struct Counters {
        std::uint64_t dropped_packets = 0;
        std::uint64_t queue_samples = 0;
        Time queue_delay_sum = 0;
    };

    std::vector<Counters> flows_;
};

}  // namespace quicgym::ns3_host
