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
        std::uint64_t queue_samples = 0;
        Time queue_delay_sum = 0;

        // Those of several bottlenecks, before the delays become seconds.
        Counters& operator+=(const Counters& other) {
            dropped_packets += other.dropped_packets;
            queue_samples += other.queue_samples;
            queue_delay_sum += other.queue_delay_sum;
            return *this;
        }
        void add_to(FlowStatistics& statistics) const {
            statistics.dropped_packets += dropped_packets;
            statistics.queue_samples += queue_samples;
            statistics.queue_delay_sum_seconds += to_seconds(queue_delay_sum);
        }
    };

    explicit FlowCounters(std::size_t flow_count) : flows_(flow_count) {}

    std::size_t flow_count() const { return flows_.size(); }
    void count_drop(std::size_t flow) { ++flows_[flow].dropped_packets; }
    void count_queue_delay(std::size_t flow, Time delay) {
        ++flows_[flow].queue_samples;
        flows_[flow].queue_delay_sum += delay;
    }
    const Counters& of(std::size_t flow) const { return flows_[flow]; }

private:
    std::vector<Counters> flows_;
};

}  // namespace quicgym::ns3_host
