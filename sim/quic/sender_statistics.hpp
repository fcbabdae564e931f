// Totals of what a sender sent, the RTTs that it measured and the window that it had.
#pragma once

#include <cstdint>

#include "sim/base/delay_histogram.hpp"
#include "sim/base/rate_bins.hpp"
#include "sim/base/time.hpp"
#include "sim/base/time_integral.hpp"
#include "sim/simulation.hpp"

namespace quicgym::quic {

class SenderStatistics {
public:
    SenderStatistics(Time start, Time stop, std::uint64_t window_bytes)
        : start_(start), window_(start, window_bytes), sent_bins_(start, stop) {}

    void on_packet_sent(Time now, std::uint64_t bytes) {
        sent_bins_.advance(now, sent_bytes_);
        ++sent_packets_;
        sent_bytes_ += bytes;
    }
    void on_rtt_sample(Time sample) { rtts_.add(sample); }
    // The controller's window from `now` on.
    void on_window(Time now, std::uint64_t bytes) { window_.set(now, bytes); }
    void on_close(Time now) {
        closed_time_ = now;
        sent_bins_.finish(now, sent_bytes_);
    }

    std::uint64_t sent_bytes() const { return sent_bytes_; }
    void add_statistics(Time now, std::uint64_t packet_bytes, FlowStatistics& statistics) const;
    void add_state(FlowState& state) const;
    // Adds the sender's part of Simulation::totals, other than its statistics.
    void mark(Time now, std::uint64_t packet_bytes, FlowTotals& totals);

private:
    Time end_at(Time now) const;  // of the time over which the window is integrated

    Time start_;
    Time closed_time_ = kNever;
    std::uint64_t sent_packets_ = 0;
    std::uint64_t sent_bytes_ = 0;
    TimeIntegral window_;
    RateBins sent_bins_;
    RttHistogram rtts_;
};

}  // namespace quicgym::quic
