#include "controllers/bbr.hpp"

#include <algorithm>
#include <utility>

#include "controllers/registration.hpp"

namespace quicgym {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFullPipeGrowth = 1.25;  // draft 4.3.2.2: the pipe is full after
constexpr int kFullPipeRounds = 3;        // three rounds with less growth than this
constexpr double kQuantaInFlight = 3.0;   // draft 4.2.3.2
// Linux bbr_extra_acked_win_rtts, twice, and bbr_extra_acked_max_us.
constexpr std::uint64_t kExtraAckedRounds = 10;
constexpr double kMostExtraAckedSeconds = 0.1;

}  // namespace

Bbr::Bbr(const char* name, const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : Controller(max_datagram_bytes), name_(name) {
    apply_parameters(with_values(bbr_parameter_table(), name_, BbrParameters(), values));
    window_bytes_ = std::max(initial_window_bytes(max_datagram_bytes), derived_.min_window_bytes);
    enter_startup();
    // Draft 4.2.1: high_gain * initial window / RTT; the first RTT sample corrects it.
    pacing_rate_ = pacing_gain_ * static_cast<double>(window_bytes_) / to_seconds(kInitialRtt);
}

// Draft 4.3.4.4: the first packet after silence leaves at the bandwidth, whatever the phase.
void Bbr::on_packet_sent(Time, std::uint64_t bytes, std::uint64_t in_flight_bytes) {
    if (in_flight_bytes > bytes) return;
    idle_restart_ = true;
    if (mode_ == ControllerMode::probe_bw && bandwidth_.best() > 0.0) {
        pacing_rate_ = parameters_.pacing_margin * bandwidth_.best();
    }
}

// Draft 3.5.2, BBRUpdateOnACK, in its order.
void Bbr::on_ack(const AckEvent& event) {
    round_count_ += event.round_start ? 1 : 0;
    update_recovery(event);
    update_bandwidth(event);
    if (parameters_.extra_acked_gain > 0.0) update_ack_aggregation(event);
    update_cycle_phase(event);
    check_full_pipe(event);
    check_drain(event);
    const bool expired = rtprop_.expired(event.now, derived_.rtprop_window) && probe_rtt_rule_.rtprop_expires;
    update_round_trip(event, expired);
    // Before ProbeRTT may end: on long paths its one round is all that row 4 has.
    if (derived_.window_rule) decide(event);
    check_probe_rtt(event, expired);
    update_pacing_rate();
    update_window(event);
}

// Linux bbr_update_ack_aggregation; the draft has a gain of 2 alone for ACKs that come late or together.
void Bbr::update_ack_aggregation(const AckEvent& event) {
    ack_aggregation_.update(event.now, event.newly_acked_bytes, bandwidth_.best(), window_bytes_,
                            round_count_, kExtraAckedRounds);
}

// Draft 4.1.1.5. Samples that the application or ProbeRTT limited count only when they are higher.
void Bbr::update_bandwidth(const AckEvent& event) {
    if (mode_ != ControllerMode::probe_rtt) limited_.end_if_delivered(event.now, event.delivered_bytes);
    const double rate = event.sample.delivery_rate;
    if (rate > 0.0 && (rate >= bandwidth_.best() || !sample_is_limited(event))) {
        bandwidth_.update(rate, round_count_, derived_.bandwidth_window_rounds);
    }
}

// Draft 4.3.5, BBRHandleProbeRTT marks the connection application-limited until what is then in
// flight is delivered. The sample's packet shows by its send time whether it was sent under it.
bool Bbr::sample_is_limited(const AckEvent& event) const {
    return event.sample.app_limited || limited_.covers(event.largest_acked_sent_time);
}

// Draft 4.3.4.3, BBRCheckCyclePhase.
void Bbr::update_cycle_phase(const AckEvent& event) {
    if (mode_ != ControllerMode::probe_bw) return;
    const bool full_length = event.now - phase_start_ > rtprop_.value();
    bool advance = full_length;
    if (pacing_gain_ > 1.0) {
        advance = full_length &&
                  (event.newly_lost_bytes > 0 ||
                   static_cast<double>(event.prior_in_flight_bytes) >= in_flight_target(pacing_gain_));
    } else if (pacing_gain_ < 1.0) {
        advance = full_length || static_cast<double>(event.prior_in_flight_bytes) <= in_flight_target(1.0);
    }
    if (advance) set_phase(phase_ + 1 == followed_gain_cycle().size() ? 0 : phase_ + 1, event.now);
}

void Bbr::set_phase(std::size_t phase, Time now) {
    phase_ = phase;
    phase_start_ = now;
    pacing_gain_ = followed_gain_cycle()[phase];
}

// Draft 4.3.2.2, BBRCheckFullPipe.
void Bbr::check_full_pipe(const AckEvent& event) {
    if (filled_pipe_ || !event.round_start || sample_is_limited(event)) return;
    if (bandwidth_.best() >= full_pipe_bandwidth_ * kFullPipeGrowth) {
        full_pipe_bandwidth_ = bandwidth_.best();
        full_pipe_rounds_ = 0;
        return;
    }
    filled_pipe_ = ++full_pipe_rounds_ >= kFullPipeRounds;
}

// Draft 4.3.3.
void Bbr::check_drain(const AckEvent& event) {
    if (mode_ == ControllerMode::startup && filled_pipe_) {
        mode_ = ControllerMode::drain;
        pacing_gain_ = 1.0 / parameters_.startup_gain;
        cwnd_gain_ = parameters_.startup_gain;
    }
    if (mode_ == ControllerMode::drain &&
        static_cast<double>(event.in_flight_bytes) <= in_flight_target(1.0)) {
        enter_probe_bw(event.now, *event.random);
    }
}

// Draft 4.1.2.3, BBRUpdateRTprop.
void Bbr::update_round_trip(const AckEvent& event, bool expired) {
    if (event.measured_rtt <= 0) return;
    const double rtt_seconds = to_seconds(event.measured_rtt);
    if (rtprop_.value() == 0) {
        rtprop_.set(event.measured_rtt, event.now);
        smoothed_rtt_seconds_ = rtt_seconds;
        // Draft 4.2.1: the initial rate again, now with a measured RTT.
        pacing_rate_ = parameters_.startup_gain * static_cast<double>(window_bytes_) / rtt_seconds;
    } else if (derived_.rtprop_follows && (event.measured_rtt <= rtprop_.value() || expired)) {
        rtprop_.set(event.measured_rtt, event.now);
    }
    latest_rtt_seconds_ = rtt_seconds;
    smoothed_rtt_seconds_ =
        parameters_.alpha * smoothed_rtt_seconds_ + (1.0 - parameters_.alpha) * rtt_seconds;
    model_rtt_seconds_ = parameters_.alpha > 0.0 ? smoothed_rtt_seconds_ : to_seconds(rtprop_.value());
}

// Draft 4.3.5, BBRCheckProbeRTT.
void Bbr::check_probe_rtt(const AckEvent& event, bool expired) {
    const bool draining = mode_ == ControllerMode::probe_rtt && !probe_rtt_because_of_loss_;
    const bool due = (expired && !idle_restart_ && probe_rtt_rule_.may_begin) || probe_rtt_rule_.begins_now;
    if (due && !draining) enter_probe_rtt(event.now, false);
    if (mode_ == ControllerMode::probe_rtt) handle_probe_rtt(event);
    idle_restart_ = false;
}

void Bbr::enter_probe_rtt(Time now, bool because_of_loss) {
    save_window();
    mode_ = ControllerMode::probe_rtt;
    pacing_gain_ = 1.0;
    cwnd_gain_ = 1.0;
    probe_rtt_because_of_loss_ = because_of_loss;
    probe_rtt_round_done_ = false;
    probe_rtt_round_start_ = now;
    probe_rtt_done_time_ = because_of_loss ? now + derived_.probe_rtt_duration : 0;
    limited_.begin(now);
}

// Draft 4.3.5, BBRHandleProbeRTT.
void Bbr::handle_probe_rtt(const AckEvent& event) {
    limited_.extend(event.delivered_bytes, event.in_flight_bytes);
    if (probe_rtt_done_time_ == 0) {
        if (event.in_flight_bytes > derived_.min_window_bytes) return;
        probe_rtt_done_time_ = event.now + derived_.probe_rtt_duration;
        probe_rtt_round_start_ = event.now;
        return;
    }
    probe_rtt_round_done_ = probe_rtt_round_done_ || event.largest_acked_sent_time > probe_rtt_round_start_;
    if (probe_rtt_round_done_ && event.now > probe_rtt_done_time_ + probe_rtt_rule_.extension) {
        leave_probe_rtt(event);
    }
}

void Bbr::leave_probe_rtt(const AckEvent& event) {
    const bool restore = !probe_rtt_because_of_loss_;
    if (restore) rtprop_.renew(event.now);
    if (filled_pipe_) {
        enter_probe_bw(event.now, *event.random);
    } else {
        enter_startup();
    }
    if (restore) restore_window();
}

void Bbr::enter_startup() {
    mode_ = ControllerMode::startup;
    pacing_gain_ = parameters_.startup_gain;
    cwnd_gain_ = parameters_.startup_gain;
}

void Bbr::restart(Time now) {
    filled_pipe_ = false;
    full_pipe_bandwidth_ = 0.0;
    full_pipe_rounds_ = 0;
    rtprop_.renew(now);
    enter_startup();
    restore_window();
}

void Bbr::restart_gain_cycle(Time now) {
    set_phase(0, now);
}

void Bbr::on_other_gain_cycle() {
    const std::vector<double>& cycle = followed_gain_cycle();
    phase_ = std::min(phase_, cycle.size() - 1);
    if (mode_ == ControllerMode::probe_bw) pacing_gain_ = cycle[phase_];
}

// Draft 4.3.4.2: a random phase, but none that would begin by giving bandwidth away.
void Bbr::enter_probe_bw(Time now, Random& random) {
    mode_ = ControllerMode::probe_bw;
    cwnd_gain_ = parameters_.cwnd_gain;
    const std::vector<double>& cycle = followed_gain_cycle();
    const auto may_begin_in = [this](double gain) { return gain >= parameters_.entry_gain_minimum; };
    const auto phases = static_cast<std::size_t>(std::count_if(cycle.begin(), cycle.end(), may_begin_in));
    const bool any_phase = phases == 0;  // no gain is large enough
    std::uint64_t choice = random.below(any_phase ? cycle.size() : phases);
    std::size_t phase = 0;
    while (!(any_phase || may_begin_in(cycle[phase])) || choice-- > 0) ++phase;
    set_phase(phase, now);
    lost_since_decision_ = false;
    next_decision_round_ = round_count_ + derived_.decision_interval_rounds;
    window_held_ = derived_.window_rule;
}

// eBCC Algorithm 1, once per decision interval. Losses with diff < gamma are left to BBR, unless every loss
// counts.
void Bbr::decide(const AckEvent& event) {
    if (!event.round_start || round_count_ < next_decision_round_) return;
    const bool in_probe_rtt = mode_ == ControllerMode::probe_rtt && probe_rtt_because_of_loss_;
    if (mode_ != ControllerMode::probe_bw && !in_probe_rtt) return;
    next_decision_round_ = round_count_ + derived_.decision_interval_rounds;
    const bool lost = std::exchange(lost_since_decision_, false);
    const bool queue_is_long = queue_packets() >= parameters_.gamma;
    const bool congested = lost && (queue_is_long || !derived_.loss_needs_queue);
    const double window = static_cast<double>(window_bytes_);
    if (in_probe_rtt) {
        // Row 4, equation 8.
        if (congested) window_bytes_ = bounded_window(window * (1.0 - parameters_.beta));
        return;
    }
    if (congested) {
        // Row 3. The window that packet conservation has left is the one that ProbeRTT holds.
        in_recovery_ = packet_conservation_ = false;
        window_held_ = true;
        enter_probe_rtt(event.now, true);
        return;
    }
    window_held_ = !lost;
    if (lost || packet_conservation_) return;
    const double target = in_flight_target(cwnd_gain_);
    double next = (window + target) * 0.5;  // row 1, equation 2
    if (queue_is_long) {
        const bool is_stored = derived_.stored_window && window_of_short_queue_ > 0.0;
        const double previous_window =
            is_stored ? window_of_short_queue_ : 2.0 * window - target;  // row 2, equations 6 and 7
        next = (previous_window + window) * 0.5;
    } else {
        window_of_short_queue_ = window;
    }
    // Row 2 moves away from targetCwnd, in either direction: both ends need a bound.
    window_bytes_ = bounded_window(std::min(next, parameters_.window_cap_targets * target));
}

// eBCC equations 3 to 5: diff = (cwnd / baseRTT - cwnd / RTT) * baseRTT.
double Bbr::queue_packets() const {
    if (latest_rtt_seconds_ <= 0.0) return 0.0;
    const double share = 1.0 - to_seconds(rtprop_.value()) / latest_rtt_seconds_;
    return std::max(0.0,
                    static_cast<double>(window_bytes_) * share / static_cast<double>(max_datagram_bytes_));
}

// Draft 4.2.1. Until the pipe is full the rate only rises.
void Bbr::update_pacing_rate() {
    const double rate = parameters_.pacing_margin * pacing_gain_ * bandwidth_.best();
    if (rate > pacing_rate_ || (filled_pipe_ && rate > 0.0)) pacing_rate_ = rate;
}

// Draft 4.2.3.2, BBRInflight: gain * BDP, and room for the bursts of the two hosts.
double Bbr::in_flight_target(double gain) const {
    constexpr double kMost = 0x1p62;  // callers make it a whole number of 64 bits
    const double bdp = bandwidth_.best() * model_rtt_seconds_;
    if (bdp <= 0.0) return static_cast<double>(initial_window_bytes(max_datagram_bytes_));
    return std::min(gain * bdp + derived_.quanta_bytes, kMost);
}

// The draft's target_cwnd, and what ACKs run ahead by (Linux bbr_ack_aggregation_cwnd).
double Bbr::window_target() const {
    const double target = in_flight_target(cwnd_gain_);
    if (!filled_pipe_) return target;
    const double extra_acked = parameters_.extra_acked_gain * ack_aggregation_.extra_acked_bytes();
    return target + std::min(extra_acked, kMostExtraAckedSeconds * bandwidth_.best());
}

// Draft 4.2.3.2 to 4.2.3.6, BBRSetCwnd.
void Bbr::update_window(const AckEvent& event) {
    std::uint64_t window = window_bytes_;
    if (packet_conservation_) {
        window = std::max(window, event.in_flight_bytes + event.newly_acked_bytes);
    } else if (!window_held_) {
        const auto target = static_cast<std::uint64_t>(static_cast<std::int64_t>(window_target()));
        if (filled_pipe_) {
            window = std::min(window + event.newly_acked_bytes, target);
        } else if (window < target || event.delivered_bytes < initial_window_bytes(max_datagram_bytes_)) {
            window += event.newly_acked_bytes;
        }
    }
    if (mode_ == ControllerMode::probe_rtt && !probe_rtt_because_of_loss_) {
        window = std::min(window, derived_.min_window_bytes);
    }
    window_bytes_ = std::max(window, derived_.min_window_bytes);
    if (!derived_.conservation_round) packet_conservation_ = false;
}

// Row 2 may ask for less than nothing.
std::uint64_t Bbr::bounded_window(double bytes) const {
    return static_cast<std::uint64_t>(std::max(bytes, static_cast<double>(derived_.min_window_bytes)));
}

// Draft 4.2.3.4: packet conservation for the first round of a recovery.
void Bbr::on_loss(const LossEvent& event) {
    lost_since_decision_ = true;
    latest_loss_time_ = event.now;
    // In a ProbeRTT that a loss began, row 4 is the reaction to loss.
    if (mode_ == ControllerMode::probe_rtt && probe_rtt_because_of_loss_) return;
    if (in_recovery_) {
        window_bytes_ -= std::min(window_bytes_, event.lost_bytes);
    } else {
        save_window();
        in_recovery_ = packet_conservation_ = true;
        recovery_start_ = event.now;
        window_bytes_ = event.in_flight_bytes + max_datagram_bytes_;
    }
    window_bytes_ = std::max(window_bytes_, derived_.min_window_bytes);
}

// Conservation ends, and the window returns, with the first packet sent after the recovery began.
// The recovery itself ends with a round that loses nothing: until then a path with random loss
// gets no further round of conservation, as TCP's recovery, one round longer for its
// retransmissions, would not give one either.
void Bbr::update_recovery(const AckEvent& event) {
    if (!in_recovery_) return;
    const bool round_over = event.largest_acked_sent_time > recovery_start_;
    if (packet_conservation_ && round_over) {
        packet_conservation_ = false;
        if (mode_ != ControllerMode::probe_rtt) restore_window();
    }
    const bool lossless_round =
        event.newly_lost_bytes == 0 && event.largest_acked_sent_time > latest_loss_time_;
    if (derived_.conservation_round ? lossless_round : round_over) {
        in_recovery_ = packet_conservation_ = false;
        if (mode_ != ControllerMode::probe_rtt) restore_window();
    }
}

// Draft 4.2.3.4 on a retransmission timeout, with the floor of 4.2.3.3. Linux also forgets how
// full the pipe seemed.
void Bbr::on_persistent_congestion(Time now) {
    save_window();
    in_recovery_ = true;
    packet_conservation_ = false;
    window_held_ = false;
    latest_loss_time_ = now;
    full_pipe_bandwidth_ = 0.0;
    window_bytes_ = derived_.min_window_bytes;
}

// Another controller is active, but BBR keeps updating its model. An old RTprop stays, so that ProbeRTT
// measures it anew once BBR is active again. A ProbeRTT ends, because nobody keeps the queue empty for it.
void Bbr::on_ack_standing_by(const AckEvent& event) {
    round_count_ += event.round_start ? 1 : 0;
    update_bandwidth(event);
    update_round_trip(event, false);
    if (mode_ == ControllerMode::probe_rtt) leave_probe_rtt(event);
}

// The data that the path holds without a queue. In ProbeRTT the window is no measure of it.
std::uint64_t Bbr::window_to_hand_over() const {
    const std::uint64_t target = bounded_window(in_flight_target(1.0));
    return mode_ == ControllerMode::probe_rtt ? target : std::min(window_bytes_, target);
}

// The window moves to targetCwnd from there. A Startup that never was comes now, whatever others
// have found: their windows may have kept the path from being full.
void Bbr::take_over(std::uint64_t window_bytes, bool) {
    in_recovery_ = packet_conservation_ = lost_since_decision_ = idle_restart_ = false;
    window_bytes_ = std::max(window_bytes, derived_.min_window_bytes);
    prior_window_bytes_ = window_bytes_;
    update_pacing_rate();
}

// BBR version 1 does not react to ECN.
void Bbr::on_ecn(const EcnEvent&) {}

void Bbr::save_window() {
    // The window of a ProbeRTT that a loss began is eBCC's, not a temporary one.
    const bool already_cut =
        in_recovery_ || (mode_ == ControllerMode::probe_rtt && !probe_rtt_because_of_loss_);
    prior_window_bytes_ = already_cut ? std::max(prior_window_bytes_, window_bytes_) : window_bytes_;
}

void Bbr::restore_window() {
    window_bytes_ = std::max(window_bytes_, std::exchange(prior_window_bytes_, 0));
}

void Bbr::apply_parameters(BbrParameters&& parameters) {
    parameters_ = std::move(parameters);
    const double datagram = static_cast<double>(max_datagram_bytes_);
    derived_.bandwidth_window_rounds = parameters_.bandwidth_window_rounds >= 1.0
                                           ? static_cast<std::uint64_t>(parameters_.bandwidth_window_rounds)
                                           : parameters_.gain_cycle.size() + 2;
    derived_.decision_interval_rounds = static_cast<std::uint64_t>(parameters_.decision_interval_rounds);
    derived_.min_window_bytes = static_cast<std::uint64_t>(parameters_.min_window_packets * datagram);
    derived_.quanta_bytes = kQuantaInFlight * parameters_.send_quantum_packets * datagram;
    derived_.rtprop_window = static_cast<Time>(parameters_.rtprop_window_s * 1e9);
    derived_.probe_rtt_duration = static_cast<Time>(parameters_.probe_rtt_duration_ms * 1e6);
    derived_.window_rule = parameters_.gamma < kInfinity;
    derived_.loss_needs_queue = is_on(parameters_.loss_needs_queue);
    derived_.stored_window = is_on(parameters_.stored_window);
    derived_.conservation_round = is_on(parameters_.conservation_round);
    derived_.rtprop_follows = parameters_.alpha == 0.0 || is_on(parameters_.smoothing_updates_rtprop);
}

void Bbr::set_parameters(const ParameterValues& values) {
    const bool had_window_rule = derived_.window_rule;
    apply_parameters(with_values(bbr_parameter_table(), name_, parameters_, values));
    // The state is kept; only values that were computed from the old parameters are computed again.
    phase_ = std::min(phase_, followed_gain_cycle().size() - 1);
    switch (mode_) {
        case ControllerMode::startup:
            enter_startup();
            break;
        case ControllerMode::drain:
            pacing_gain_ = 1.0 / parameters_.startup_gain;
            cwnd_gain_ = parameters_.startup_gain;
            break;
        case ControllerMode::probe_bw:
            pacing_gain_ = followed_gain_cycle()[phase_];
            cwnd_gain_ = parameters_.cwnd_gain;
            break;
        default:
            break;
    }
    window_held_ = window_held_ && derived_.window_rule;
    const std::uint64_t latest_decision_round = round_count_ + derived_.decision_interval_rounds;
    next_decision_round_ = std::min(next_decision_round_, latest_decision_round);
    if (derived_.window_rule && !had_window_rule) {
        // Nothing has been decided so far, so that no loss is one since the last decision.
        lost_since_decision_ = false;
        next_decision_round_ = latest_decision_round;
    }
    if (rtprop_.value() != 0) {
        model_rtt_seconds_ = parameters_.alpha > 0.0 ? smoothed_rtt_seconds_ : to_seconds(rtprop_.value());
    }
    window_bytes_ = std::max(window_bytes_, derived_.min_window_bytes);
    update_pacing_rate();
}

ParameterValues Bbr::parameters() const {
    return to_values(bbr_parameter_table(), parameters_);
}

ControllerSnapshot Bbr::snapshot() const {
    ControllerSnapshot result = snapshot_in(mode_);
    result.bandwidth_estimate = bandwidth_.best();
    result.round_trip_estimate = static_cast<Time>(model_rtt_seconds_ * 1e9 + 0.5);
    result.queue_estimate_packets = queue_packets();
    if (mode_ == ControllerMode::probe_bw) {
        result.cycle_gain = pacing_gain_;
        result.cycle_passed = static_cast<double>(phase_) / static_cast<double>(followed_gain_cycle().size());
        result.cycle_phase_end = phase_start_ + rtprop_.value();
    }
    return result;
}

namespace {

// The name is an argument of the template because the catalogue keeps plain function pointers.
template <const char* Name>
ControllerSpecification preset(const char* description, const char* source, const BbrParameters& defaults) {
    return {
        Name, description, source, specifications(bbr_parameter_table(), defaults),
        [](const ParameterValues& values, std::uint64_t max_datagram_bytes) -> std::unique_ptr<Controller> {
            return std::make_unique<Bbr>(Name, values, max_datagram_bytes);
        }};
}

constexpr char kBbr[] = "bbr";
constexpr char kBbrSmooth[] = "bbr-smooth";
constexpr char kBbrExtended[] = "bbr-extended";
constexpr char kBbrCombined[] = "bbr-combined";
constexpr char kEbcc[] = "ebcc";

ControllerSpecification bbr_specification() {
    return preset<kBbr>(
        "BBR version 1: a model of bottleneck bandwidth and propagation delay sets rate and window",
        "draft-cardwell-iccrg-bbr-congestion-control-00; Linux tcp_bbr", BbrParameters());
}

ControllerSpecification bbr_smooth_specification() {
    return preset<kBbrSmooth>("BBR with an average of the RTT in place of its minimum in the BDP",
                              "BBR for high-latency networks report, technical approach 1",
                              bbr_smooth_parameters());
}

ControllerSpecification bbr_extended_specification() {
    return preset<kBbrExtended>(
        "BBR with plateaus between the probing and the draining phase of its gain cycle",
        "BBR for high-latency networks report, technical approach 2", bbr_extended_parameters());
}

ControllerSpecification bbr_combined_specification() {
    return preset<kBbrCombined>("BBR with the averaged RTT and the extended gain cycle",
                                "BBR for high-latency networks report, both approaches",
                                bbr_combined_parameters());
}

ControllerSpecification ebcc_specification() {
    return preset<kEbcc>("eBCC: BBR whose window follows loss and the length of its own queue",
                         "Enhanced BBR congestion control for QUIC, section 3.3", ebcc_parameters());
}

const Registration registered[] = {
    {bbr_specification, {.place = 40, .baseline_place = 80}},
    {bbr_smooth_specification, {.place = 50, .baseline_place = 90, .preset_of = kBbr}},
    {bbr_extended_specification, {.place = 60, .baseline_place = 100, .preset_of = kBbr}},
    {bbr_combined_specification, {.place = 70, .baseline_place = 110, .preset_of = kBbr}},
    {ebcc_specification, {.place = 80, .baseline_place = 120, .preset_of = kBbr}},
};

}  // namespace

}  // namespace quicgym
