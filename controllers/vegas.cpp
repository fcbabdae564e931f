// TCP Vegas, Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet"
// (IEEE JSAC 13:8, 1995; "the paper" below), for QUIC.
#include <algorithm>
#include <limits>
#include <utility>

#include "controllers/controller.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

namespace {

struct VegasParameters {
    double alpha = 2.0;
    double beta = 4.0;
    double gamma = 1.0;
    double loss_reduction_factor = 0.5;
    double pacing_gain = 1.25;
    double slow_start_pacing_gain = 2.0;
};

class Vegas final : public Controller {
public:
    Vegas(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Vegas>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;

private:
    bool in_slow_start() const { return window_ < slow_start_threshold_; }
    void end_round(bool app_limited);
    void congestion_event(Time now, Time sent_time);
    void publish();

    VegasParameters parameters_;
    const double packets_per_byte_;

    // Windows in packets of the maximum datagram size.
    double window_;
    double slow_start_threshold_;
    double difference_packets_ = 0.0;  // of the last round that was measured
    Time base_rtt_ = 0;
    Time round_min_rtt_ = kNever;
    bool growing_round_ = false;  // slow start: every other round; the handshake is none
    RecoveryPeriod recovery_;
    WindowPacing pacing_;
};

const ParameterTable<VegasParameters>& table() {
    using P = VegasParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::alpha>("alpha", 0.0, 1000.0, "packets",
                             "With fewer of its packets in the queue the flow adds one packet per round",
                             "Vegas paper, congestion avoidance mechanism")
            .logarithmic(1.0),
        number<P, &P::beta>("beta", 0.0, 1000.0, "packets",
                            "With more of its packets in the queue the flow takes one away",
                            "Vegas paper, congestion avoidance mechanism")
            .logarithmic(1.0),
        number<P, &P::gamma>("gamma", 0.0, 1000.0, "packets",
                             "Slow start ends with more of the flow's packets in the queue",
                             "Vegas paper, modified slow-start mechanism")
            .logarithmic(1.0),
        number<P, &P::loss_reduction_factor>("loss_reduction_factor", 0.1, 0.95, "",
                                             "What is left of the window after a congestion event",
                                             "RFC 9002 B.1, kLossReductionFactor"),
        number<P, &P::pacing_gain>("pacing_gain", 1.0, 4.0, "",
                                   "N in pacing rate = N * window / smoothed RTT, in congestion avoidance",
                                   "RFC 9002 7.7"),
        number<P, &P::slow_start_pacing_gain>("slow_start_pacing_gain", 1.0, 4.0, "", "N in slow start",
                                              "RFC 9002 7.7; Linux tcp_pacing_ss_ratio"),
    };
    return rows;
}

constexpr double kMinimumWindow = static_cast<double>(kMinimumWindowDatagrams);

Vegas::Vegas(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : Controller(max_datagram_bytes),
      parameters_(with_values(table(), "vegas", VegasParameters(), values)),
      packets_per_byte_(1.0 / static_cast<double>(max_datagram_bytes)),
      window_(static_cast<double>(initial_window_bytes(max_datagram_bytes)) * packets_per_byte_),
      slow_start_threshold_(std::numeric_limits<double>::infinity()) {
    publish();
}

void Vegas::on_ack(const AckEvent& event) {
    pacing_.update_rtt(event.smoothed_rtt);
    recovery_.on_ack(event.largest_acked_sent_time);
    base_rtt_ = event.min_rtt;
    // Packets from before the recovery period measured a queue under another window.
    if (!recovery_.covers(event.largest_acked_sent_time)) {
        if (event.round_start) end_round(event.app_limited);
        if (event.rtt > 0) round_min_rtt_ = std::min(round_min_rtt_, event.rtt);
        // RFC 9002 7.8: no growth while underutilised.
        if (in_slow_start() && growing_round_ && !event.app_limited) {
            window_ += static_cast<double>(event.newly_acked_bytes) * packets_per_byte_;
        }
    }
    publish();
}

// Paper, congestion avoidance mechanism: Expected = window / baseRTT, Actual = window / RTT,
// Diff = (Expected - Actual) * baseRTT, the packets of the flow's own that wait in the queue.
void Vegas::end_round(bool app_limited) {
    // Modified slow start: the window stands still every other round, which is compared.
    const bool window_stood = !std::exchange(growing_round_, !growing_round_);
    const Time rtt = std::exchange(round_min_rtt_, kNever);
    if (rtt == kNever || base_rtt_ <= 0) return;  // a round without a sample says nothing
    const double share = std::min(1.0, static_cast<double>(base_rtt_) / static_cast<double>(rtt));
    difference_packets_ = window_ * (1.0 - share);
    if (in_slow_start()) {
        if (!window_stood || difference_packets_ <= parameters_.gamma) return;
        // The data that the path holds without a queue, and one packet, as Linux and ns-3 set it.
        window_ = std::max(std::min(window_, window_ * share + 1.0), kMinimumWindow);
        slow_start_threshold_ = window_;
    } else if (difference_packets_ < parameters_.alpha) {
        if (!app_limited) window_ += 1.0;
    } else if (difference_packets_ > parameters_.beta) {
        window_ = std::max(window_ - 1.0, kMinimumWindow);
        // Or a window below the threshold would be slow start again.
        slow_start_threshold_ = std::min(slow_start_threshold_, window_);
    }
}

void Vegas::on_loss(const LossEvent& event) {
    congestion_event(event.now, event.largest_lost_sent_time);
}

// RFC 9002 7.1: an increase of the ECN-CE count is treated as a loss.
void Vegas::on_ecn(const EcnEvent& event) {
    if (event.newly_marked_packets > 0) congestion_event(event.now, event.largest_acked_sent_time);
}

// RFC 9002 B.6, OnCongestionEvent, as NewReno.
void Vegas::congestion_event(Time now, Time sent_time) {
    if (recovery_.covers(sent_time)) return;
    recovery_.begin(now);
    window_ = std::max(window_ * parameters_.loss_reduction_factor, kMinimumWindow);
    slow_start_threshold_ = window_;
    round_min_rtt_ = kNever;
    publish();
}

// RFC 9002 7.6.2 and B.8; the threshold stays, so the window comes back by slow start.
void Vegas::on_persistent_congestion(Time) {
    window_ = kMinimumWindow;
    recovery_.reset();
    round_min_rtt_ = kNever;
    publish();
}

void Vegas::publish() {
    const double bytes = window_ * static_cast<double>(max_datagram_bytes_);
    window_bytes_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes + 0.5));
    pacing_rate_ =
        pacing_.rate(in_slow_start() ? parameters_.slow_start_pacing_gain : parameters_.pacing_gain, bytes);
}

void Vegas::set_parameters(const ParameterValues& values) {
    parameters_ = with_values(table(), "vegas", parameters_, values);
    publish();
}

ParameterValues Vegas::parameters() const {
    return to_values(table(), parameters_);
}

ControllerSnapshot Vegas::snapshot() const {
    ControllerSnapshot result = snapshot_in(recovery_.mode(in_slow_start()));
    result.round_trip_estimate = base_rtt_;
    result.queue_estimate_packets = difference_packets_;
    return result;
}

ControllerSpecification vegas_specification() {
    return {"vegas", "Vegas: the window follows the number of the flow's packets in the queue, from the RTT",
            "Brakmo and Peterson, IEEE JSAC 13:8, 1995", specifications(table(), VegasParameters()),
            construct<Vegas>};
}

const Registration registered(vegas_specification, {.place = 30, .baseline_place = 50});

}  // namespace

}  // namespace quicgym
