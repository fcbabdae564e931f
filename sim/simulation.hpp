// The interface of a run. It has three parts, because not every run offers all of them: a caller may watch
// the run, steer its flows, and read its records. The native engine and the ns-3 host implement all three.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "controllers/controller.hpp"
#include "sim/base/delay_histogram.hpp"
#include "sim/base/fields.hpp"
#include "sim/base/one_thread.hpp"
#include "sim/base/rate_bins.hpp"
#include "sim/base/time.hpp"
#include "sim/scenario.hpp"

namespace quicgym {

// Totals of one flow since its start. Datagram bytes are UDP payloads.
struct FlowStatistics {
    Time start = 0;                  // with jitter
    Time completion = kNever;        // when the receiver had every byte of a sized transfer
    std::uint64_t sent_packets = 0;  // everything the data sender put on the wire
    std::uint64_t sent_bytes = 0;
    std::uint64_t received_packets = 0;  // of those, what reached the receiver
    std::uint64_t received_bytes = 0;
    std::uint64_t dropped_packets = 0;  // of those, what the network lost: queue drops and random loss
    std::uint64_t goodput_bytes = 0;  // stream bytes received for the first time, without bursts' own stream
    std::uint64_t declared_lost_packets = 0;    // RFC 9002 6.1
    std::uint64_t spuriously_lost_packets = 0;  // of those, what arrived all the same
    std::uint64_t congestion_events = 0;        // ACKs that revealed loss
    std::uint64_t persistent_congestion_events = 0;
    std::uint64_t probe_timeouts = 0;  // RFC 9002 6.2
    std::uint64_t blocked_events = 0;  // limits at which DATA_BLOCKED was sent
    double blocked_seconds = 0.0;  // new data waited for the receiver's flow control, and for nothing else
    std::uint64_t send_buffer_events = 0;  // how often the send buffer became full
    std::uint64_t ecn_marks = 0;           // ECN-CE reported by the peer
    std::uint64_t rtt_samples = 0;         // without the peer's ACK delay taken off
    double rtt_sum_seconds = 0.0;
    double rtt_p50_seconds = 0.0;  // this and the other quantiles: from histograms with under 1% error
    double rtt_p95_seconds = 0.0;
    double rtt_p99_seconds = 0.0;
    Time min_rtt = 0;          // RFC 9002 5.2: restarts after persistent congestion, so the mean may be lower
    Time lowest_rtt = 0;       // of all samples; 0 without one
    std::uint64_t queues = 1;  // before the hops that its data passes
    std::uint64_t queue_samples = 0;  // packets that left one of them
    double queue_delay_sum_seconds = 0.0;
    double queue_delay_p50_seconds = 0.0;  // in one of the queues
    double queue_delay_p95_seconds = 0.0;
    double queue_delay_p99_seconds = 0.0;
    double one_way_delay_sum_seconds = 0.0;  // of the packets received, from sending to receiving
    double one_way_delay_p50_seconds = 0.0;
    double one_way_delay_p95_seconds = 0.0;
    double one_way_delay_p99_seconds = 0.0;
    double window_seconds = 0.0;         // from the start until the sender stops sending for good
    double window_packet_seconds = 0.0;  // the integral of the controller's window over that time
    double max_window_packets = 0.0;
    // Whole seconds counted from the start, until the sender (receiver) is done; the variance of the rates
    // in them is that of a population, in (bytes per second)^2.
    std::uint64_t send_rate_bins = 0;
    double send_rate_variance = 0.0;
    std::uint64_t receive_rate_bins = 0;
    double receive_rate_variance = 0.0;
    // For video: how long it played, and how long it stalled with an empty buffer after it had begun.
    double playing_seconds = 0.0;
    double stalled_seconds = 0.0;

    void set_rtts(const DelayBuckets& rtts);
    void set_queue_delays(const DelayBuckets& delays);
    void set_one_way_delays(const DelayBuckets& delays);

    QUICGYM_FIELDS(FlowStatistics, start, completion, sent_packets, sent_bytes, received_packets,
                   received_bytes, dropped_packets, goodput_bytes, declared_lost_packets,
                   spuriously_lost_packets, congestion_events, persistent_congestion_events, probe_timeouts,
                   blocked_events, blocked_seconds, send_buffer_events, ecn_marks, rtt_samples,
                   rtt_sum_seconds, rtt_p50_seconds, rtt_p95_seconds, rtt_p99_seconds, min_rtt, lowest_rtt,
                   queues, queue_samples, queue_delay_sum_seconds, queue_delay_p50_seconds,
                   queue_delay_p95_seconds, queue_delay_p99_seconds, one_way_delay_sum_seconds,
                   one_way_delay_p50_seconds, one_way_delay_p95_seconds, one_way_delay_p99_seconds,
                   window_seconds, window_packet_seconds, max_window_packets, send_rate_bins,
                   send_rate_variance, receive_rate_bins, receive_rate_variance, playing_seconds,
                   stalled_seconds)
};

// The totals of a flow at a mark, and what it takes to tell them from those at an earlier one.
struct FlowTotals {
    FlowStatistics statistics;
    DelayBuckets rtts;
    DelayBuckets queue_delays;
    DelayBuckets one_way_delays;
    RateSums send_rates;
    RateSums receive_rates;
    std::vector<double> max_windows_packets;  // from each mark to the next, the last one to this mark

    // The statistics since a mark of the same flow. `start`, `completion`, `queues`, `min_rtt` and
    // `lowest_rtt` are those at this mark. Rates vary over the whole seconds that ended in between. Throws
    // std::invalid_argument where `earlier` is not the earlier one.
    FlowStatistics since(const FlowTotals& earlier) const;
};

// One row of a flow's time series.
struct TraceSample {
    Time time;
    std::uint64_t window_bytes;
    double pacing_rate;  // bytes per second
    Time rtt;            // latest sample
    Time smoothed_rtt;
    std::uint64_t in_flight_bytes;
    std::uint64_t sent_bytes;       // totals so far
    std::uint64_t delivered_bytes;  // acknowledged
    std::uint64_t lost_bytes;       // declared lost
    std::uint64_t received_bytes;   // at the receiver
    std::uint64_t dropped_packets;  // by the network: queue drops and random loss; the host fills it in
    ControllerMode mode;
    std::uint8_t unused[7];  // written, so that equal runs give equal bytes

    QUICGYM_FIELDS(TraceSample, time, window_bytes, pacing_rate, rtt, smoothed_rtt, in_flight_bytes,
                   sent_bytes, delivered_bytes, lost_bytes, received_bytes, dropped_packets, mode)
};

// The state of a flow that an environment reads after every decision. It is cheap, unlike FlowStatistics.
struct FlowState {
    Time start = 0;            // with jitter
    Time completion = kNever;  // as in FlowStatistics, like the counters below
    TraceSample sample{};
    std::uint64_t received_packets = 0;
    std::uint64_t dropped_packets = 0;
    std::uint64_t rtt_samples = 0;
    double rtt_sum_seconds = 0.0;
    Time min_rtt = 0;  // 0: no sample yet
    std::uint64_t ecn_marks = 0;
    double cycle_gain = 1.0;  // as in ControllerSnapshot, like the two below
    double cycle_passed = 0.0;
    Time cycle_phase_end = 0;

    void set_cycle(const ControllerSnapshot& snapshot) {
        cycle_gain = snapshot.cycle_gain;
        cycle_passed = snapshot.cycle_passed;
        cycle_phase_end = snapshot.cycle_phase_end;
    }

    QUICGYM_FIELDS(FlowState, start, completion, sample, received_packets, dropped_packets, rtt_samples,
                   rtt_sum_seconds, min_rtt, ecn_marks, cycle_gain, cycle_passed, cycle_phase_end)
};

// A transfer of the short flows, or a response to a request.
struct Transfer {
    Time start = 0;
    Time completion = kNever;  // when the receiver had every byte
    std::uint64_t size_bytes = 0;
    std::uint64_t lost_packets = 0;  // of a short flow: declared lost by its sender (RFC 9002 6.1)

    QUICGYM_FIELDS(Transfer, start, completion, size_bytes, lost_packets)
};

// Totals so far of all connections of one entry of short flows.
struct ShortFlowTotals {
    std::uint64_t received_packets = 0;
    std::uint64_t received_bytes = 0;   // UDP payloads
    std::uint64_t dropped_packets = 0;  // by the network
    std::uint64_t queue_samples = 0;    // packets that left one of the queues before the hops that they pass
    double queue_delay_sum_seconds = 0.0;

    QUICGYM_FIELDS(ShortFlowTotals, received_packets, received_bytes, dropped_packets, queue_samples,
                   queue_delay_sum_seconds)
};

struct QueueSample {
    Time time;
    std::uint64_t packets;  // waiting before a link
    std::uint64_t bytes;

    QUICGYM_FIELDS(QueueSample, time, packets, bytes)
};

struct Delivery {
    std::uint64_t flow;           // as wide as the rest: no padding of unknown content
    std::uint64_t packet_number;  // application data space
    Time time;                    // arrival at the receiver
    Time sent;                    // by the sender

    QUICGYM_FIELDS(Delivery, flow, packet_number, time, sent)
};

// A run that can be watched: a simulation, or a run that has happened elsewhere.
class Watched {
public:
    Watched() = default;
    virtual ~Watched() = default;
    Watched& operator=(const Watched&) = delete;

    virtual Time now() const = 0;
    // Processes every event up to and at `until`. Earlier than now() throws std::invalid_argument. What a
    // controller throws ends the run: a later call throws std::runtime_error.
    virtual void run_until(Time until) = 0;
    virtual std::size_t flow_count() const = 0;
    virtual FlowState state(std::size_t flow) const = 0;
    // The number of bottlenecks in a row. Queues are those of the forward direction.
    virtual std::size_t hop_count() const = 0;
    virtual QueueSample queue(std::size_t hop) const = 0;  // before a hop, now
    // The packets that wait now before the access link of the flow's sending host, without the one that is
    // being transmitted.
    virtual QueueSample access_queue(std::size_t flow) const = 0;
    // The entries of the scenario's short flows, in its order. An engine that cannot have them has none.
    virtual std::size_t short_flow_count() const { return 0; }
    virtual ShortFlowTotals short_flow_totals(std::size_t /*entry*/) const { return {}; }

    // To be taken by callers that let other threads in while it runs, as the Python bindings do.
    OneThread& one_thread() const { return one_thread_; }

protected:
    Watched(const Watched&) {}  // for clones; nobody uses the copy yet

private:
    mutable OneThread one_thread_;
};

// Flows whose controllers somebody outside steers, such as an agent.
class SteeredFlows {
public:
    virtual ~SteeredFlows() = default;
    virtual ControllerSnapshot snapshot(std::size_t flow) const = 0;
    virtual ParameterValues parameters(std::size_t flow) const = 0;
    virtual void set_parameters(std::size_t flow, const ParameterValues& values) = 0;
};

// The records that a simulation keeps of its flows and queues.
class Records {
public:
    virtual ~Records() = default;
    virtual FlowStatistics statistics(std::size_t flow) const = 0;
    // Marks the time: the highest window is counted afresh from here on, for FlowTotals::since.
    virtual FlowTotals totals(std::size_t flow) = 0;
    virtual const std::vector<TraceSample>& trace(std::size_t flow) const = 0;
    virtual const std::vector<QueueSample>& queue_trace(std::size_t hop) const = 0;
    // The integral over time of what waits before the bottleneck, in the unit of the queue's limit.
    virtual double queue_occupancy_seconds() const = 0;
    // In order of time, then flow; those of short flows are not recorded.
    virtual std::vector<Delivery> deliveries() const = 0;
    // The transfers of an entry of short flows, in order of arrival.
    virtual std::vector<Transfer> transfers(std::size_t /*entry*/) const { return {}; }
    // The requests of a flow's receiving application, in order; empty if it does not ask for anything.
    virtual std::vector<Transfer> requests(std::size_t flow) const = 0;
};

class Simulation : public Watched, public SteeredFlows, public Records {
public:
    // A simulation in the same state, independent of this one. Throws std::logic_error where the engine
    // cannot copy one, and what a controller throws that cannot be copied.
    virtual std::unique_ptr<Simulation> clone() const {
        throw std::logic_error("a simulation on ns-3 cannot be copied; take the native engine");
    }
};

}  // namespace quicgym
