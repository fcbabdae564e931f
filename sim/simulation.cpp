#include "sim/simulation.hpp"

#include <algorithm>

namespace quicgym {

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
    result.rtt_p95_seconds = RttHistogram::quantile_seconds(RttHistogram::between(earlier.rtts, rtts), 0.95);
    result.max_window_packets =
        *std::max_element(max_windows_packets.begin() + mark, max_windows_packets.end());
    result.send_rate_variance = send_rates.since(earlier.send_rates).variance();
    result.receive_rate_variance = receive_rates.since(earlier.receive_rates).variance();
    return result;
}

}  // namespace quicgym
