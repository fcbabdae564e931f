#include "controllers/newreno.hpp"

#include <algorithm>
#include <limits>

#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"

namespace quicgym {

namespace {

constexpr std::uint64_t kNoThreshold = std::numeric_limits<std::uint64_t>::max();

const ParameterTable<NewRenoParameters>& table() {
    using P = NewRenoParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::loss_reduction_factor>("loss_reduction_factor", 0.1, 0.95, "",
                                             "What is left of the window after a congestion event",
                                             "RFC 9002 B.1, kLossReductionFactor"),
        choice<P, &P::slow_start>("slow_start", kSlowStarts, kSlowStartDescription, kSlowStartSource),
        number<P, &P::pacing_gain>("pacing_gain", 1.0, 4.0, "",
                                   "N in pacing rate = N * window / smoothed RTT, in congestion avoidance",
                                   "RFC 9002 7.7"),
        number<P, &P::slow_start_pacing_gain>("slow_start_pacing_gain", 1.0, 4.0, "", "N in slow start",
                                              "RFC 9002 7.7; Linux tcp_pacing_ss_ratio"),
        number<P, &P::growth_per_ack>(
            "growth_per_ack", 0.0, 1.0, "",
            "1: each ACK frame that brings news lets the window grow, by one datagram in slow start and by "
            "datagram^2 / window later, however much it acknowledges; 0: acknowledged bytes count",
            "RFC 5681 3.1, equation 3; ns-3 TcpNewReno"),
        number<P, &P::reduction_per_ack>("reduction_per_ack", 0.0, 1.0, "",
                                         "1: each ACK frame that reveals a loss cuts the window; 0: one cut "
                                         "in a recovery period",
                                         "QUIC module for ns-3, docs/papers/ebcc.md; RFC 9002 7.3.2"),
        number<P, &P::flight_size>(
            "flight_size", 0.0, 1.0, "",
            "1: what is left is a share of the bytes in flight when the loss is found, "
            "the lost ones included; 0: of the window",
            "RFC 5681 3.1, equation 4; RFC 9002 B.6"),
        number<P, &P::initial_window_packets>("initial_window_packets", 2.0, 100.0, "packets",
                                              "Initial window; its limit in bytes changes in proportion",
                                              "RFC 9002 7.2"),
    };
    return rows;
}

}  // namespace

NewReno::NewReno(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : LossBasedController(max_datagram_bytes),
      parameters_(with_values(table(), "newreno", NewRenoParameters(), values)),
      slow_start_threshold_(kNoThreshold) {
    window_bytes_ = initial_window_bytes(max_datagram_bytes,
                                         static_cast<std::uint64_t>(parameters_.initial_window_packets));
    update_pacing_rate();
}

void NewReno::on_ack(const AckEvent& event) {
    pacing_.update_rtt(event.smoothed_rtt);
    recovery_.on_ack(event.largest_acked_sent_time);
    // RFC 9002 B.5: no growth for packets of the recovery period, nor (7.8) while underutilised.
    const bool may_grow = !recovery_.covers(event.largest_acked_sent_time) && !event.app_limited &&
                          event.now != last_reduction_;
    if (in_slow_start()) {
        slow_start(event, may_grow);
    } else if (may_grow && is_on(parameters_.growth_per_ack)) {
        window_bytes_ +=
            std::max<std::uint64_t>(1, max_datagram_bytes_ * max_datagram_bytes_ / window_bytes_);
    } else if (may_grow) {
        // RFC 9002 7.3.3: one datagram for each window acknowledged, counted in bytes.
        acked_bytes_ += event.newly_acked_bytes;
        if (acked_bytes_ >= window_bytes_) {
            acked_bytes_ -= window_bytes_;
            window_bytes_ += max_datagram_bytes_;
        }
    }
    update_pacing_rate();
}

void NewReno::slow_start(const AckEvent& event, bool may_grow) {
    const std::uint64_t counted_bytes =
        is_on(parameters_.growth_per_ack) ? max_datagram_bytes_ : event.newly_acked_bytes;
    const bool first = slow_start_threshold_ == kNoThreshold;
    if (may_grow) {
        const double grown =
            static_cast<double>(counted_bytes) * slow_start_exit_.growth(parameters_.slow_start, first);
        window_bytes_ += static_cast<std::uint64_t>(grown);
    }
    const double packets = static_cast<double>(window_bytes_) / static_cast<double>(max_datagram_bytes_);
    if (slow_start_exit_.on_ack(parameters_.slow_start, first, event, packets, pacing_rate_))
        slow_start_threshold_ = window_bytes_;
}

void NewReno::on_loss(const LossEvent& event) {
    congestion_event(event.now, event.largest_lost_sent_time, event.in_flight_bytes + event.lost_bytes);
    update_pacing_rate();
}

// RFC 9002 7.1: an increase of the ECN-CE count is treated as a loss.
void NewReno::on_ecn(const EcnEvent& event) {
    if (event.newly_marked_packets > 0)
        congestion_event(event.now, event.largest_acked_sent_time, event.in_flight_bytes);
}

// RFC 9002 B.6, OnCongestionEvent.
void NewReno::congestion_event(Time now, Time sent_time, std::uint64_t flight_bytes) {
    if (is_on(parameters_.reduction_per_ack)) {
        last_reduction_ = now;
    } else {
        if (recovery_.covers(sent_time)) return;
        recovery_.begin(now);
    }
    const std::uint64_t reduced = is_on(parameters_.flight_size) ? flight_bytes : window_bytes_;
    slow_start_threshold_ =
        static_cast<std::uint64_t>(static_cast<double>(reduced) * parameters_.loss_reduction_factor);
    window_bytes_ = std::max(slow_start_threshold_, kMinimumWindowDatagrams * max_datagram_bytes_);
    acked_bytes_ = 0;
    update_pacing_rate();
}

// RFC 9002 7.6.2 and B.8; the threshold stays, so the window comes back by slow start.
void NewReno::on_persistent_congestion(Time) {
    window_bytes_ = kMinimumWindowDatagrams * max_datagram_bytes_;
    acked_bytes_ = 0;
    recovery_.reset();
    slow_start_exit_.restart();
    update_pacing_rate();
}

void NewReno::scale_window(double factor, bool ends_slow_start) {
    const bool slow_start = in_slow_start() && !ends_slow_start;
    const auto scaled = static_cast<std::uint64_t>(static_cast<double>(window_bytes_) * factor);
    window_bytes_ = std::max(scaled, kMinimumWindowDatagrams * max_datagram_bytes_);
    if (!slow_start) slow_start_threshold_ = std::min(slow_start_threshold_, window_bytes_);
    update_pacing_rate();
}

void NewReno::update_pacing_rate() {
    const double gain = in_slow_start() ? parameters_.slow_start_pacing_gain : parameters_.pacing_gain;
    pacing_rate_ = pacing_.rate(gain, static_cast<double>(window_bytes_));
}

void NewReno::set_parameters(const ParameterValues& values) {
    parameters_ = with_values(table(), "newreno", parameters_, values);
    update_pacing_rate();
}

ParameterValues NewReno::parameters() const {
    return to_values(table(), parameters_);
}

ControllerSnapshot NewReno::snapshot() const {
    return snapshot_in(recovery_.mode(in_slow_start()));
}

ControllerSpecification newreno_specification() {
    return {"newreno", "NewReno: additive increase, multiplicative decrease on loss or ECN-CE",
            "RFC 9002 section 7 and appendix B; HyStart++, RFC 9406",
            specifications(table(), NewRenoParameters()), construct<NewReno>};
}

namespace {

const Registration registered(newreno_specification, {.place = 10, .baseline_place = 10});

}  // namespace

}  // namespace quicgym
