#include "controllers/bbr3.hpp"

#include <algorithm>

#include "controllers/registration.hpp"

namespace quicgym {

namespace {

constexpr char kName[] = "bbr3";
// 5.6.3: the send quantum is what the rate sends in this time, within these bounds.
constexpr double kQuantumSeconds = 1e-3;
constexpr double kLargestQuantumBytes = 64.0 * 1024.0;
constexpr std::uint64_t kSmallestQuantumDatagrams = 2;
constexpr std::uint64_t kProbeUpBudgetDatagrams = 2;  // 5.6.4.2
constexpr double kFirstRttSeconds = 1e-3;             // 5.6.2: before there is a sample

}  // namespace

// 5.2.1; what needs the time waits for the first ACK.
Bbr3::Bbr3(const ParameterValues& values, std::uint64_t max_datagram_bytes) : Controller(max_datagram_bytes) {
    apply_parameters(with_values(bbr3_parameter_table(), kName, Bbr3Parameters(), values));
    window_bytes_ = std::max(initial_window_bytes(max_datagram_bytes), min_window_bytes_);
    pacing_rate_ = gains().pacing * static_cast<double>(window_bytes_) / kFirstRttSeconds;
}

// 5.2.1 and 5.6.2: the clocks, and the first pacing rate once there is an RTT.
void Bbr3::start(const AckEvent& event) {
    if (!started_) {
        started_ = true;
        min_rtt_time_ = probe_rtt_minimum_time_ = event.now;
        ack_aggregation_.restart(event.now);
    }
    if (min_rtt_ == kNever && event.measured_rtt > 0)
        pacing_rate_ = gains().pacing * static_cast<double>(window_bytes_) / to_seconds(event.measured_rtt);
}

// 5.4.1: after idleness the first packets leave at the bandwidth, whatever the phase, and a ProbeRTT that has
// lasted its time ends. 2.2, C.is_cwnd_limited.
void Bbr3::on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) {
    window_was_full_ = window_was_full_ || in_flight_bytes + max_datagram_bytes_ > window_bytes_;
    if (in_flight_bytes > bytes || !app_limited_) return;
    idle_restart_ = true;
    ack_aggregation_.set_start(now);
    if (in_probe_bw()) {
        set_pacing_rate(1.0);
    } else if (state_ == State::probe_rtt) {
        check_probe_rtt_done(now);
    }
}

void Bbr3::take_in(const AckEvent& event) {
    start(event);
    delivered_ = event.delivered_bytes;
    prior_delivered_ = event.delivered_bytes - event.sample.delivered_bytes;
    if (state_ != State::probe_rtt) limited_.end_if_delivered(event.now, event.delivered_bytes);
    app_limited_ = event.no_unsent_data || limited_.is_open();
    sample_limited_ = event.sample.app_limited || limited_.covers(event.largest_acked_sent_time);
    if (!wait_is_drawn_) draw_probe_wait(*event.random);
}

// 5.2.3, in its order.
void Bbr3::on_ack(const AckEvent& event) {
    take_in(event);
    if (event.newly_acked_bytes == 0) {  // the handshake's
        update_min_rtt(event);
        return;
    }
    update_recovery(event);
    note_marks(event);
    update_latest_delivery_signals(event);
    update_congestion_signals(event);
    update_ack_aggregation(event);
    check_full_bandwidth(event);
    check_startup_done(event);
    check_drain_done(event);
    update_cycle(event);
    update_min_rtt(event);
    check_probe_rtt(event);
    advance_latest_delivery_signals(event);
    bandwidth_ = std::min(max_bandwidth(), bandwidth_shortterm_);  // 5.5.10.3, BoundBWForModel
    set_pacing_rate(gains().pacing);
    set_window(event);
}

// on_packet_lost has had each of the packets.
void Bbr3::on_loss(const LossEvent&) {}

// 3.7: any mark is congestion. The ACK that tells it follows.
void Bbr3::on_ecn(const EcnEvent& event) {
    marked_bytes_ += event.newly_marked_packets * max_datagram_bytes_;
}

// 5.6.4.4, OnEnterRTO, with the floor of 5.6.4.3 for the window. The losses that show it have begun the loss
// recovery, so the state is saved.
void Bbr3::on_persistent_congestion(Time) {
    window_bytes_ = min_window_bytes_;
}

// 5.3.3.8.3, PickProbeWait.
void Bbr3::draw_probe_wait(Random& random) {
    wait_is_drawn_ = true;
    drawn_rounds_ = random.below(2);
    const double seconds = parameters_.probe_wait_s + parameters_.probe_wait_spread_s * random.uniform();
    drawn_wait_ = static_cast<Time>(seconds * 1e9);
}

// 5.6.1, the columns of gains.
Bbr3::Gains Bbr3::gains() const {
    const double usual = parameters_.cwnd_gain;
    switch (state_) {
        case State::startup:
            return {parameters_.startup_pacing_gain, usual};
        case State::drain:
            return {parameters_.drain_pacing_gain, usual};
        case State::down:
            return {parameters_.probe_down_pacing_gain, usual};
        case State::up:
            return {parameters_.probe_up_pacing_gain, parameters_.probe_up_cwnd_gain};
        case State::probe_rtt:
            return {1.0, parameters_.probe_rtt_cwnd_gain};
        default:
            return {1.0, usual};
    }
}

// 5.6.2, SetPacingRateWithGain: until the pipe was full once, the rate only rises.
void Bbr3::set_pacing_rate(double gain) {
    const double rate = gain * bandwidth_ * parameters_.pacing_margin;
    if (rate > pacing_rate_ || (full_bandwidth_reached_ && rate > 0.0)) pacing_rate_ = rate;
}

// 5.6.4.6, SetCwnd.
void Bbr3::set_window(const AckEvent& event) {
    const std::uint64_t in_flight = bdp_multiple(bandwidth_, gains().cwnd) +
                                    static_cast<std::uint64_t>(ack_aggregation_.extra_acked_bytes());
    const std::uint64_t largest = with_budget(in_flight);  // 5.6.4.2, BBR.max_inflight
    if (full_bandwidth_reached_) {
        window_bytes_ = std::min(window_bytes_ + event.newly_acked_bytes, largest);
    } else if (window_bytes_ < largest || delivered_ < initial_window_bytes(max_datagram_bytes_)) {
        window_bytes_ += event.newly_acked_bytes;
    }
    window_bytes_ = std::max(window_bytes_, min_window_bytes_);
    if (state_ == State::probe_rtt) window_bytes_ = std::min(window_bytes_, probe_rtt_window());
    window_bytes_ = std::min(window_bytes_, volume_cap());
}

// 5.6.4.7, BoundCwndForModel. The last column of 5.6.1 caps Drain, too; the pseudocode does not.
std::uint64_t Bbr3::volume_cap() const {
    std::uint64_t cap = kUnbounded;
    if (state_ == State::probe_rtt || state_ == State::cruise) {
        cap = inflight_with_headroom();
    } else if (in_probe_bw()) {
        cap = inflight_longterm_;
    }
    return std::max(std::min(cap, inflight_shortterm_), min_window_bytes_);
}

// 5.6.4.4: the latest window that neither loss recovery nor ProbeRTT has changed.
void Bbr3::save_window() {
    const bool changed = recovery_.active() || state_ == State::probe_rtt;
    prior_window_bytes_ = changed ? std::max(prior_window_bytes_, window_bytes_) : window_bytes_;
}

void Bbr3::restore_window() {
    window_bytes_ = std::max(window_bytes_, prior_window_bytes_);
}

// 5.6.4.2, BDPMultiple.
std::uint64_t Bbr3::bdp_multiple(double bandwidth, double gain) const {
    if (min_rtt_ == kNever) return initial_window_bytes(max_datagram_bytes_);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(gain * bdp_bytes(bandwidth)));
}

// 5.6.4.2, QuantizationBudget, with the offload budget of QUIC (5.5.8.2): the send quantum (5.6.3).
std::uint64_t Bbr3::with_budget(std::uint64_t in_flight_bytes) const {
    const double quantum = std::min(pacing_rate_ * kQuantumSeconds, kLargestQuantumBytes);
    const std::uint64_t budget = std::max(static_cast<std::uint64_t>(static_cast<std::int64_t>(quantum)),
                                          kSmallestQuantumDatagrams * max_datagram_bytes_);
    const std::uint64_t bytes = std::max({in_flight_bytes, budget, min_window_bytes_});
    return bytes + (state_ == State::up ? kProbeUpBudgetDatagrams * max_datagram_bytes_ : 0);
}

std::uint64_t Bbr3::inflight(double bandwidth, double gain) const {
    return with_budget(bdp_multiple(bandwidth, gain));
}

// 5.6.4.5, ProbeRTTCwnd.
std::uint64_t Bbr3::probe_rtt_window() const {
    return std::max(bdp_multiple(bandwidth_, parameters_.probe_rtt_cwnd_gain), min_window_bytes_);
}

void Bbr3::apply_parameters(const Bbr3Parameters& parameters) {
    parameters_ = parameters;
    min_window_bytes_ =
        static_cast<std::uint64_t>(parameters_.min_window_packets * static_cast<double>(max_datagram_bytes_));
    extra_acked_window_rounds_ = static_cast<std::uint64_t>(parameters_.extra_acked_window_rounds);
    probe_rtt_interval_ = static_cast<Time>(parameters_.probe_rtt_interval_s * 1e9);
    probe_rtt_duration_ = static_cast<Time>(parameters_.probe_rtt_duration_ms * 1e6);
    min_rtt_window_ = static_cast<Time>(parameters_.min_rtt_window_s * 1e9);
}

void Bbr3::set_parameters(const ParameterValues& values) {
    apply_parameters(with_values(bbr3_parameter_table(), kName, parameters_, values));
    window_bytes_ = std::max(window_bytes_, min_window_bytes_);
    set_pacing_rate(gains().pacing);
}

ParameterValues Bbr3::parameters() const {
    return to_values(bbr3_parameter_table(), parameters_);
}

ControllerSnapshot Bbr3::snapshot() const {
    ControllerSnapshot result;
    result.window_bytes = window_bytes_;
    result.pacing_rate = pacing_rate_;
    result.bandwidth_estimate = max_bandwidth();
    result.round_trip_estimate = min_rtt_ == kNever ? 0 : min_rtt_;
    result.inflight_longterm_bytes = inflight_longterm_ == kUnbounded ? 0 : inflight_longterm_;
    result.inflight_shortterm_bytes = inflight_shortterm_ == kUnbounded ? 0 : inflight_shortterm_;
    result.mode = ControllerMode::probe_bw;
    switch (state_) {
        case State::startup:
            result.mode = ControllerMode::startup;
            break;
        case State::drain:
            result.mode = ControllerMode::drain;
            break;
        case State::down:
            result.probe_bw_phase = ProbeBwPhase::down;
            break;
        case State::cruise:
            result.probe_bw_phase = ProbeBwPhase::cruise;
            break;
        case State::refill:
            result.probe_bw_phase = ProbeBwPhase::refill;
            break;
        case State::up:
            result.probe_bw_phase = ProbeBwPhase::up;
            break;
        case State::probe_rtt:
            result.mode = ControllerMode::probe_rtt;
            break;
    }
    return result;
}

namespace {

ControllerSpecification bbr3_specification() {
    return {kName, "BBR version 3: long- and short-term bounds on rate and data in flight, which loss sets",
            "draft-ietf-ccwg-bbr-06", specifications(bbr3_parameter_table(), Bbr3Parameters()),
            construct<Bbr3>};
}

const Registration registered(bbr3_specification);

}  // namespace

}  // namespace quicgym
