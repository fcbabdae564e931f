// Records the packets that pass an emulated network, for each path in equal intervals. It replaces the
// engine's statistics and traces for flows whose endpoints are not quicgym's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/fields.hpp"
#include "sim/base/time.hpp"
#include "sim/simulation.hpp"

namespace quicgym::net {

// On the way forward, in one interval. Bytes are UDP payloads; times are sums in ns.
struct PassedPackets {
    std::uint64_t sent_packets = 0;
    std::uint64_t sent_bytes = 0;
    std::uint64_t received_packets = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t dropped_packets = 0;  // by queues and policers, and lost on wires
    std::uint64_t queue_samples = 0;    // packets that left a queue
    Time queue_delay = 0;               // of these
    Time one_way_delay = 0;             // of the received

    QUICGYM_FIELDS(PassedPackets, sent_packets, sent_bytes, received_packets, received_bytes, dropped_packets,
                   queue_samples, queue_delay, one_way_delay)
};

// Before a hop of the way forward, at one time.
struct QueueRecord {
    Time time;
    std::uint64_t packets;
    std::uint64_t bytes;
    double occupancy_seconds;  // the integral so far, in the unit of the queue's limit

    QUICGYM_FIELDS(QueueRecord, time, packets, bytes, occupancy_seconds)
};

// Has room for the whole run from the beginning: recording allocates nothing.
class Recording {
public:
    Recording() = default;
    Recording(Time interval, Time duration, std::size_t paths, std::size_t hops)
        : interval_(interval),
          rows_(static_cast<std::size_t>(duration / interval) + 1),
          paths_(paths, std::vector<PassedPackets>(rows_)),
          queues_(hops) {
        for (std::vector<QueueRecord>& queue : queues_) queue.reserve(rows_);
    }

    bool is_on() const { return interval_ > 0; }

    // Adds an event to row `ceil(time / interval)`. Events later than the last row are not recorded.
    template <class Add>
    void add(std::size_t path, Time time, Add add) {
        if (!is_on()) return;
        const auto row = static_cast<std::size_t>(time / interval_ + (time % interval_ > 0));
        if (row < rows_) add(paths_[path][row]);
    }

    // The time of the next row of the queues; kNever: there are all.
    Time next_row() const {
        const std::size_t there = queues_.empty() ? 0 : queues_.front().size();
        return is_on() && there < rows_ ? static_cast<Time>(there) * interval_ : kNever;
    }
    void add_queue(std::size_t hop, const QueueSample& sample, double occupancy_seconds) {
        queues_[hop].push_back({sample.time, sample.packets, sample.bytes, occupancy_seconds});
    }

    Time interval() const { return interval_; }
    std::size_t path_count() const { return paths_.size(); }
    std::size_t hop_count() const { return queues_.size(); }
    const std::vector<PassedPackets>& path(std::size_t path) const { return paths_.at(path); }
    const std::vector<QueueRecord>& queue(std::size_t hop) const { return queues_.at(hop); }

private:
    Time interval_ = 0;
    std::size_t rows_ = 0;
    std::vector<std::vector<PassedPackets>> paths_;
    std::vector<std::vector<QueueRecord>> queues_;
};

}  // namespace quicgym::net
