// The parameters of the BBR family: structure, table and presets.
#pragma once

#include <limits>
#include <vector>

#include "controllers/parameters.hpp"

namespace quicgym {

struct BbrParameters {
    double gamma = std::numeric_limits<double>::infinity();
    double beta = 0.0;
    std::vector<double> gain_cycle = {1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
    double entry_gain_minimum = 1.0;
    double alpha = 0.0;
    double startup_gain = 2.885;  // 2 / ln 2 as Linux rounds it
    double cwnd_gain = 2.0;
    double bandwidth_window_rounds = 0.0;  // 0: length of the gain cycle + 2
    double rtprop_window_s = 10.0;
    double probe_rtt_duration_ms = 200.0;
    double min_window_packets = 4.0;
    double send_quantum_packets = 1.0;
    double pacing_margin = 0.99;
    double smoothing_updates_rtprop = 1.0;  // 0 or 1
    double decision_interval_rounds = 1.0;
    double window_cap_targets = 1.0;
    double loss_needs_queue = 1.0;    // 0 or 1
    double stored_window = 0.0;       // 0 or 1
    double conservation_round = 1.0;  // 0 or 1
    double extra_acked_gain = 0.0;
};

inline const ParameterTable<BbrParameters>& bbr_parameter_table() {
    using P = BbrParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::gamma>(
            "gamma", 0.0, std::numeric_limits<double>::infinity(), "packets",
            "Threshold on the flow's own queue, diff; infinity switches eBCC's window rule off",
            "eBCC 3.3, Algorithm 1")
            .odds(30.0),
        number<P, &P::beta>("beta", 0.0, 1.0, "",
                            "Share of the window that is cut on a loss in ProbeRTT while diff >= gamma",
                            "eBCC equation 8"),
        list<P, &P::gain_cycle>("gain_cycle", 0.1, 10.0, "",
                                "Pacing gains of ProbeBW, one for each phase; any length from 1",
                                "BBR draft-00 4.3.4.2")
            .logarithmic(),
        number<P, &P::entry_gain_minimum>(
            "entry_gain_minimum", 0.0, 10.0, "",
            "ProbeBW may begin in the phases with this gain or more; if there are none, in any",
            "BBR draft-00 4.3.4.2; extended gain cycle: any phase"),
        number<P, &P::alpha>(
            "alpha", 0.0, 0.999, "",
            "Weight of history in the RTT average that replaces RTprop in the BDP; 0: plain RTprop",
            "BBR for high-latency networks report, technical approach 1"),
        number<P, &P::startup_gain>(
            "startup_gain", 1.1, 10.0, "",
            "Pacing and window gain of Startup, 2 / ln 2; Drain paces with its inverse",
            "BBR draft-00 4.3.2"),
        number<P, &P::cwnd_gain>("cwnd_gain", 0.1, 10.0, "", "Window in ProbeBW as a multiple of the BDP",
                                 "BBR draft-00 4.2.3.2 and 4.3.4"),
        number<P, &P::bandwidth_window_rounds>(
            "bandwidth_window_rounds", 0.0, 10000.0, "rounds",
            "Length of the maximum filter of bandwidth; 0: length of the gain cycle + 2",
            "BBR draft-00 4.1.1.2; Linux bbr_bw_rtts")
            .logarithmic(1.0),
        number<P, &P::rtprop_window_s>(
            "rtprop_window_s", 0.1, 10000.0, "s",
            "Length of the minimum filter of RTT; ProbeRTT follows when it runs out",
            "BBR draft-00 4.1.2.2, RTpropFilterLen")
            .logarithmic(),
        number<P, &P::probe_rtt_duration_ms>("probe_rtt_duration_ms", 0.0, 10000.0, "ms",
                                             "ProbeRTT lasts this long, and one round at least",
                                             "BBR draft-00 4.3.5, ProbeRTTDuration")
            .logarithmic(1.0),
        number<P, &P::min_window_packets>("min_window_packets", 2.0, 1000.0, "packets",
                                          "Lower bound of the window, and the window in ProbeRTT",
                                          "BBR draft-00 4.2.3.3, BBRMinPipeCwnd")
            .logarithmic(),
        number<P, &P::send_quantum_packets>(
            "send_quantum_packets", 0.0, 64.0, "packets",
            "Largest burst that the pacer sends at once; three of them are added to gain * BDP",
            "BBR draft-00 4.2.2 and 4.2.3.2"),
        number<P, &P::pacing_margin>("pacing_margin", 0.5, 1.0, "",
                                     "The pacing rate is this share of gain * bandwidth",
                                     "Linux bbr_pacing_margin_percent"),
        number<P, &P::smoothing_updates_rtprop>(
            "smoothing_updates_rtprop", 0.0, 1.0, "",
            "With alpha > 0, 1: RTprop is measured as ever; 0: it keeps its first sample, so that "
            "ProbeRTT comes once per rtprop_window_s",
            "BBR for high-latency networks report, its published code"),
        number<P, &P::decision_interval_rounds>("decision_interval_rounds", 1.0, 1000.0, "rounds",
                                                "eBCC's table is applied once in so many packet-timed rounds",
                                                "eBCC Algorithm 1 leaves it open")
            .logarithmic(),
        number<P, &P::window_cap_targets>(
            "window_cap_targets", 1.0, 10.0, "",
            "Upper bound of the window that eBCC's rule sets, as a multiple of targetCwnd",
            "eBCC Table 1: targetCwnd is the window's maximum limit"),
        number<P, &P::loss_needs_queue>(
            "loss_needs_queue", 0.0, 1.0, "",
            "1: a loss leads to ProbeRTT, and cuts the window there, while diff >= gamma; 0: every loss does. "
            "No effect while gamma is infinite",
            "eBCC: 1 is Algorithm 1, lines 9 and 11; 0 is the text of 3.3, before equation 8"),
        number<P, &P::stored_window>(
            "stored_window", 0.0, 1.0, "",
            "pfCwnd is 0: 2 cwnd - targetCwnd; 1: what the window was before the last decision with diff < gamma",
            "eBCC: 0 is equation 6; 1 is the text after equation 7"),
        number<P, &P::conservation_round>(
            "conservation_round", 0.0, 1.0, "",
            "1: a recovery begins with a round of packet conservation, and lasts until a round loses nothing; "
            "0: the window grows again from the next ACK on, and the recovery is over after one round",
            "BBR draft-00 4.2.3.4; QUIC module for ns-3, docs/papers/ebcc.md"),
        number<P, &P::extra_acked_gain>(
            "extra_acked_gain", 0.0, 10.0, "",
            "So many times what ACKs run ahead of the bandwidth is added to the window; 0: nothing, as in draft-00; "
            "1: as in Linux since 2019",
            "Linux bbr_extra_acked_gain"),
    };
    return rows;
}

inline BbrParameters ebcc_parameters() {
    BbrParameters parameters;
    parameters.gamma = 30.0;
    parameters.beta = 0.5;
    return parameters;
}

// "Improving BBR for High-Latency, Low-Bandwidth Networks", technical approach 1.
inline BbrParameters bbr_smooth_parameters() {
    BbrParameters parameters;
    parameters.alpha = 0.9;
    parameters.smoothing_updates_rtprop = 0.0;
    return parameters;
}

// Technical approach 2.
inline BbrParameters bbr_extended_parameters() {
    BbrParameters parameters;
    parameters.gain_cycle = {1.25, 1.0, 1.0, 0.75, 1.0, 1.0};
    parameters.entry_gain_minimum = 0.0;
    return parameters;
}

// Both; this variant keeps measuring RTprop.
inline BbrParameters bbr_combined_parameters() {
    BbrParameters parameters = bbr_extended_parameters();
    parameters.alpha = 0.9;
    return parameters;
}

}  // namespace quicgym
