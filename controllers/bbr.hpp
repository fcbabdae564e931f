// BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, "the draft" below) with the
// parameters that the papers add to it: eBCC's gamma and beta, the gain cycle, the RTT average.
// docs/controllers/bbr.md lists what the sources leave open and how it is read here.
#pragma once

#include "controllers/bbr_filters.hpp"
#include "controllers/bbr_parameters.hpp"
#include "controllers/controller.hpp"

namespace quicgym {

class Bbr : public Controller {
public:
    // `name` is the preset's, for error messages; it must outlive the controller.
    Bbr(const char* name, const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Bbr>(*this); }

    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override;
    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;
    void on_ack_standing_by(const AckEvent& event) override;
    std::uint64_t window_to_hand_over() const override;
    void take_over(std::uint64_t window_bytes, bool slow_start) override;

protected:
    // An algorithm built on BBR may decide this about ProbeRTT before it passes an ACK on. The defaults
    // are BBR's own answers.
    struct ProbeRttRule {
        bool may_begin = true;       // when RTprop is older than its window
        bool begins_now = false;     // whatever its age
        bool rtprop_expires = true;  // an old RTprop gives way to the latest sample
        Time extension = 0;          // on top of ProbeRTT's own duration
    };

    // From ProbeRTT into a new Startup; model and window are what they would be at its end.
    void restart(Time now);
    // In ProbeBW: the gain cycle again from its first phase.
    void restart_gain_cycle(Time now);
    // The gains that ProbeBW follows. Where another list takes their place, the phase and its beginning stay;
    // on_other_gain_cycle must follow.
    virtual const std::vector<double>& followed_gain_cycle() const { return gain_cycle(); }
    void on_other_gain_cycle();
    const std::vector<double>& gain_cycle() const { return parameters_.gain_cycle; }

    const char* name() const { return name_; }
    ControllerMode mode() const { return mode_; }
    Time probe_rtt_duration() const { return derived_.probe_rtt_duration; }

    ProbeRttRule probe_rtt_rule_;

private:
    // The parameters, converted to the units that are used for every packet.
    struct Derived {
        std::uint64_t bandwidth_window_rounds = 0;
        std::uint64_t decision_interval_rounds = 0;
        std::uint64_t min_window_bytes = 0;
        double quanta_bytes = 0.0;
        Time rtprop_window = 0;
        Time probe_rtt_duration = 0;
        bool window_rule = false;      // eBCC: gamma is finite
        bool loss_needs_queue = true;  // eBCC: rows 3 and 4 need diff >= gamma
        bool stored_window = false;    // eBCC: pfCwnd is a window that there was
        bool rtprop_follows = true;    // RTprop takes lower samples
        bool conservation_round = true;
    };

    void update_bandwidth(const AckEvent& event);
    void update_ack_aggregation(const AckEvent& event);
    void update_cycle_phase(const AckEvent& event);
    void check_full_pipe(const AckEvent& event);
    void check_drain(const AckEvent& event);
    void update_round_trip(const AckEvent& event, bool expired);
    void check_probe_rtt(const AckEvent& event, bool expired);
    void update_recovery(const AckEvent& event);
    void handle_probe_rtt(const AckEvent& event);
    void decide(const AckEvent& event);
    void update_pacing_rate();
    void update_window(const AckEvent& event);

    void enter_startup();
    void enter_probe_bw(Time now, Random& random);
    void enter_probe_rtt(Time now, bool because_of_loss);
    void leave_probe_rtt(const AckEvent& event);
    void set_phase(std::size_t phase, Time now);
    void save_window();
    void restore_window();
    void apply_parameters(BbrParameters&& parameters);

    bool sample_is_limited(const AckEvent& event) const;
    double in_flight_target(double gain) const;
    double window_target() const;
    double queue_packets() const;
    std::uint64_t bounded_window(double bytes) const;

    const char* const name_;
    BbrParameters parameters_;
    Derived derived_;

    // The model.
    WindowedMaximum bandwidth_;  // bytes per second
    AckAggregation ack_aggregation_;
    MinimumRoundTrip rtprop_;
    double smoothed_rtt_seconds_ = 0.0;  // with weight alpha; 0: no sample yet
    double model_rtt_seconds_ = 0.0;     // RTprop, or that average when alpha > 0
    double latest_rtt_seconds_ = 0.0;
    std::uint64_t round_count_ = 0;

    // The state machine.
    ControllerMode mode_ = ControllerMode::startup;
    bool filled_pipe_ = false;
    bool idle_restart_ = false;
    bool in_recovery_ = false;
    bool packet_conservation_ = false;
    bool probe_rtt_because_of_loss_ = false;
    bool probe_rtt_round_done_ = false;
    bool lost_since_decision_ = false;
    bool window_held_ = false;  // eBCC: only decisions move the window
    int full_pipe_rounds_ = 0;
    double full_pipe_bandwidth_ = 0.0;
    double pacing_gain_ = 0.0;
    double cwnd_gain_ = 0.0;
    std::size_t phase_ = 0;
    Time phase_start_ = 0;
    Time recovery_start_ = 0;  // of its round of packet conservation
    Time latest_loss_time_ = 0;
    Time probe_rtt_done_time_ = 0;  // 0: not yet down to the minimum window
    Time probe_rtt_round_start_ = 0;
    std::uint64_t prior_window_bytes_ = 0;  // what recovery or ProbeRTT will restore
    std::uint64_t next_decision_round_ = 0;

    // Its packets give rate samples of a window that ProbeRTT had cut.
    SelfLimitedSpan limited_;

    double window_of_short_queue_ = 0.0;  // eBCC: before the last decision with diff < gamma; 0: none yet
};

}  // namespace quicgym
