// The parameters of BBR version 3: structure and table.
#pragma once

#include "controllers/parameters.hpp"

namespace quicgym {

// Defaults, and the sections below, are of draft-ietf-ccwg-bbr-06.
struct Bbr3Parameters {
    double startup_pacing_gain = 2.77;  // 4 ln 2
    double drain_pacing_gain = 0.5;
    double probe_down_pacing_gain = 0.9;
    double probe_up_pacing_gain = 1.25;
    double cwnd_gain = 2.0;
    double probe_up_cwnd_gain = 2.25;
    double probe_rtt_cwnd_gain = 0.5;
    double pacing_margin = 0.99;
    double loss_threshold = 0.02;
    double beta = 0.7;
    double headroom = 0.15;
    double full_bandwidth_growth = 1.25;
    double full_bandwidth_rounds = 3.0;
    double startup_loss_ranges = 6.0;
    double probe_wait_s = 2.0;
    double probe_wait_spread_s = 1.0;
    double reno_rounds = 63.0;
    double extra_acked_window_rounds = 10.0;
    double min_rtt_window_s = 10.0;
    double probe_rtt_interval_s = 5.0;
    double probe_rtt_duration_ms = 200.0;
    double min_window_packets = 4.0;
};

inline const ParameterTable<Bbr3Parameters>& bbr3_parameter_table() {
    using P = Bbr3Parameters;
    static const ParameterTable<P> rows = {
        number<P, &P::startup_pacing_gain>("startup_pacing_gain", 1.1, 10.0, "",
                                           "Pacing gain of Startup, 4 ln 2: the rate doubles each round",
                                           "BBR draft-06 2.5, StartupPacingGain"),
        number<P, &P::drain_pacing_gain>("drain_pacing_gain", 0.05, 1.0, "", "Pacing gain of Drain",
                                         "BBR draft-06 2.5, DrainPacingGain"),
        number<P, &P::probe_down_pacing_gain>("probe_down_pacing_gain", 0.1, 1.0, "",
                                              "Pacing gain of ProbeBW_DOWN", "BBR draft-06 5.3.3.1"),
        number<P, &P::probe_up_pacing_gain>("probe_up_pacing_gain", 1.0, 10.0, "",
                                            "Pacing gain of ProbeBW_UP", "BBR draft-06 5.3.3.5"),
        number<P, &P::cwnd_gain>("cwnd_gain", 1.0, 10.0, "",
                                 "Window as a multiple of the BDP, but in ProbeBW_UP and ProbeRTT",
                                 "BBR draft-06 2.6, DefaultCwndGain"),
        number<P, &P::probe_up_cwnd_gain>("probe_up_cwnd_gain", 1.0, 10.0, "",
                                          "Window in ProbeBW_UP as a multiple of the BDP",
                                          "BBR draft-06 5.3.3.5"),
        number<P, &P::probe_rtt_cwnd_gain>("probe_rtt_cwnd_gain", 0.0, 1.0, "",
                                           "Window in ProbeRTT as a multiple of the BDP",
                                           "BBR draft-06 2.16.2, ProbeRTTCwndGain"),
        number<P, &P::pacing_margin>("pacing_margin", 0.5, 1.0, "",
                                     "The pacing rate is this share of gain * bandwidth",
                                     "BBR draft-06 2.5, PacingMarginPercent"),
        number<P, &P::loss_threshold>("loss_threshold", 0.0, 0.5, "",
                                      "Loss rate of a round that ends a probe for bandwidth",
                                      "BBR draft-06 2.8, LossThresh"),
        number<P, &P::beta>("beta", 0.1, 1.0, "", "What a round with loss leaves of the bounds at least",
                            "BBR draft-06 2.8, Beta"),
        number<P, &P::headroom>("headroom", 0.0, 0.9, "",
                                "Share of inflight_longterm that ProbeBW_CRUISE leaves to other flows",
                                "BBR draft-06 2.8, Headroom"),
        number<P, &P::full_bandwidth_growth>(
            "full_bandwidth_growth", 1.0, 4.0, "",
            "With less growth of the delivery rate than this factor a round is one without growth",
            "BBR draft-06 5.3.1.2"),
        number<P, &P::full_bandwidth_rounds>("full_bandwidth_rounds", 1.0, 100.0, "rounds",
                                             "So many rounds without growth end Startup and ProbeBW_UP",
                                             "BBR draft-06 5.3.1.2")
            .logarithmic(),
        number<P, &P::startup_loss_ranges>(
            "startup_loss_ranges", 1.0, 1000.0, "",
            "Runs of lost packets in a round that end Startup, with loss above loss_threshold",
            "BBR draft-06 5.3.1.3, BBRStartupFullLossCnt")
            .logarithmic(),
        number<P, &P::probe_wait_s>("probe_wait_s", 0.0, 1000.0, "s",
                                    "Shortest time from ProbeBW_DOWN to the next probe for bandwidth",
                                    "BBR draft-06 5.3.3.8.2, T_bbr")
            .logarithmic(0.1),
        number<P, &P::probe_wait_spread_s>("probe_wait_spread_s", 0.0, 1000.0, "s",
                                           "A random time up to this is added to probe_wait_s",
                                           "BBR draft-06 5.3.3.8.2, T_bbr")
            .logarithmic(0.1),
        number<P, &P::reno_rounds>(
            "reno_rounds", 1.0, 10000.0, "rounds",
            "After so many rounds, or as many as packets in the BDP, a probe comes without the wait",
            "BBR draft-06 5.3.3.8.2, T_reno_bound")
            .logarithmic(),
        number<P, &P::extra_acked_window_rounds>(
            "extra_acked_window_rounds", 1.0, 10000.0, "rounds",
            "Length of the maximum filter of ACK aggregation; in Startup it is 1",
            "BBR draft-06 2.12, ExtraAckedFilterLen")
            .logarithmic(),
        number<P, &P::min_rtt_window_s>("min_rtt_window_s", 0.1, 10000.0, "s",
                                        "Length of the minimum filter of RTT",
                                        "BBR draft-06 2.16.1, MinRTTFilterLen")
            .logarithmic(),
        number<P, &P::probe_rtt_interval_s>("probe_rtt_interval_s", 0.1, 10000.0, "s",
                                            "ProbeRTT follows when the RTT has had no new minimum so long",
                                            "BBR draft-06 2.16.2, ProbeRTTInterval")
            .logarithmic(),
        number<P, &P::probe_rtt_duration_ms>("probe_rtt_duration_ms", 0.0, 10000.0, "ms",
                                             "ProbeRTT lasts this long, and one round at least",
                                             "BBR draft-06 2.16.2, ProbeRTTDuration")
            .logarithmic(1.0),
        number<P, &P::min_window_packets>("min_window_packets", 2.0, 1000.0, "packets",
                                          "Lower bound of the window", "BBR draft-06 2.8, MinPipeCwnd")
            .logarithmic(),
    };
    return rows;
}

}  // namespace quicgym
