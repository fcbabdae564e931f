#include "sim/simulation.hpp"

#include <algorithm>

namespace quicgym {

void FlowStatistics::set_rtts(const DelayBuckets& rtts) {
    rtt_p50_seconds = DelayHistogram::quantile_seconds(rtts, 0.50);
    rtt_p95_seconds = DelayHistogram::quantile_seconds(rtts, 0.95);
    rtt_p99_seconds = DelayHistogram::quantile_seconds(rtts, 0.99);
}

void FlowStatistics::set_queue_delays(const DelayBuckets& delays) {
    queue_delay_p50_seconds = DelayHistogram::quantile_seconds(delays, 0.50);
    queue_delay_p95_seconds = DelayHistogram::quantile_seconds(delays, 0.95);
    queue_delay_p99_seconds = DelayHistogram::quantile_seconds(delays, 0.99);
}

void FlowStatistics::set_one_way_delays(const DelayBuckets& delays) {
    one_way_delay_p50_seconds = DelayHistogram::quantile_seconds(delays, 0.50);
    one_way_delay_p95_seconds = DelayHistogram::quantile_seconds(delays, 0.95);
    one_way_delay_p99_seconds = DelayHistogram::quantile_seconds(delays, 0.99);
}

FlowStatistics FlowTotals::since(const FlowTotals& earlier) const {
    const auto mark = static_cast<std::ptrdiff_t>(earlier.max_windows_packets.size());
    if (earlier.max_windows_packets.size() >= max_windows_packets.size() ||
        earlier.statistics.start != statistics.start) {
        throw std::invalid_argument(
            "totals at a mark are told from those of the same flow at an earlier one");
    }
    FlowStatistics result = statistics;
    FlowStatistics::for_each_field(
        [&](const char*, auto field) { result.*field -= earlier.statistics.*field; });
    result.start = statistics.start;
    result.completion = statistics.completion;
    result.queues = statistics.queues;
    result.min_rtt = statistics.min_rtt;
    result.lowest_rtt = statistics.lowest_rtt;
    result.set_rtts(DelayHistogram::between(earlier.rtts, rtts));
    result.set_queue_delays(DelayHistogram::between(earlier.queue_delays, queue_delays));
    result.set_one_way_delays(DelayHistogram::between(earlier.one_way_delays, one_way_delays));
    result.max_window_packets =
        *std::max_element(max_windows_packets.begin() + mark, max_windows_packets.end());
    result.send_rate_variance = send_rates.since(earlier.send_rates).variance();
    result.receive_rate_variance = receive_rates.since(earlier.receive_rates).variance();
    return result;
}

}  // namespace quicgym
