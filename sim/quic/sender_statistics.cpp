#include "sim/quic/sender_statistics.hpp"

#include <algorithm>

namespace quicgym::quic {

void SenderStatistics::add_statistics(Time now, std::uint64_t packet_bytes,
                                      FlowStatistics& statistics) const {
    statistics.start = start_;
    statistics.sent_packets = sent_packets_;
    statistics.sent_bytes = sent_bytes_;
    statistics.rtt_samples = rtts_.count();
    statistics.rtt_sum_seconds = rtts_.sum_seconds();
    statistics.set_rtts(rtts_.buckets());
    statistics.lowest_rtt = rtts_.lowest();

    const Time end = end_at(now);
    const auto bytes = static_cast<double>(packet_bytes);
    statistics.window_seconds = to_seconds(end - start_);
    statistics.window_packet_seconds = window_.until(end) / bytes;
    statistics.max_window_packets = static_cast<double>(window_.maximum()) / bytes;
    const RateSums rates = sent_bins_.at(now, sent_bytes_);
    statistics.send_rate_bins = rates.count;
    statistics.send_rate_variance = rates.variance();
}

void SenderStatistics::mark(Time now, std::uint64_t packet_bytes, FlowTotals& totals) {
    totals.rtts = rtts_.buckets();
    totals.send_rates = sent_bins_.at(now, sent_bytes_);
    window_.mark(end_at(now));
    for (const std::uint64_t bytes : window_.maxima()) {
        totals.max_windows_packets.push_back(static_cast<double>(bytes) / static_cast<double>(packet_bytes));
    }
}

Time SenderStatistics::end_at(Time now) const {
    return std::max(start_, std::min(now, closed_time_));
}

void SenderStatistics::add_state(FlowState& state) const {
    state.start = start_;
    state.rtt_samples = rtts_.count();
    state.rtt_sum_seconds = rtts_.sum_seconds();
}

}  // namespace quicgym::quic
