/* BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00, "the draft" below) with the parameters of
 * "Improving BBR for High-Latency, Low-Bandwidth Networks": the gain cycle and the average of the RTT. bbr,
 * bbr-smooth, bbr-extended and bbr-combined are four sets of them, as in controllers/bbr_parameters.hpp, and
 * what the sources leave open is read as in controllers/bbr.cpp.
 *
 * Times are microseconds of the connection's clock, which stands still within an event. Bandwidths are
 * packets per microsecond times 2^24, gains are thousandths, windows are packets. */
#include "kernel.h"
// clang-format off: these need kernel.h
#include "owned_window.h"
#include "windowed_maximum.h"
// clang-format on

#define MOST_PHASES 8
#define BANDWIDTH_SHIFT 24
#define RTT_SHIFT 10
#define UNIT 1000         /* of gains and shares */
#define STARTUP_GAIN 2885 /* 2 / ln 2 */
#define DRAIN_GAIN 347
#define WINDOW_GAIN 2000
#define PACING_MARGIN 990     /* Linux bbr_pacing_margin_percent */
#define FULL_PIPE_GROWTH 1250 /* draft 4.3.2.2: the pipe is full after */
#define FULL_PIPE_ROUNDS 3    /* three rounds with less growth than this */
#define QUANTA_IN_FLIGHT 3    /* draft 4.2.3.2 */
#define MINIMUM_WINDOW 4
#define INITIAL_WINDOW 10
#define RTPROP_WINDOW_US (10 * USEC_PER_SEC)
#define PROBE_RTT_US 200000

/* The parameters; the loader sets them. */
const volatile u32 gain_cycle[MOST_PHASES] = {1250, 750, 1000, 1000, 1000, 1000, 1000, 1000};
const volatile u32 phases = 8;
const volatile u32 entry_gain_minimum = 1000;
const volatile u32 alpha = 0;
const volatile u32 bandwidth_window_rounds = 10;
const volatile u32 smoothing_updates_rtprop = 1;

enum mode { STARTUP, DRAIN, PROBE_BW, PROBE_RTT };

struct bbr {
    /* The model. */
    struct windowed_maximum bandwidth; /* draft 4.1.1.2 */
    u64 smoothed_rtt;                  /* us times 2^RTT_SHIFT, with weight alpha; 0: no sample yet */
    u64 rtprop_stamp_us;
    u32 rtprop_us; /* 0: no sample yet */
    u32 rounds;
    u32 next_round_delivered; /* a packet sent after so many deliveries begins a round */

    /* The state machine. */
    u64 full_pipe_bandwidth;
    u64 phase_start_us;
    u64 recovery_start_us;
    u64 latest_loss_us;
    u64 probe_rtt_done_us; /* 0: not yet down to the minimum window */
    u64 probe_rtt_round_start_us;
    u64 pacing_rate; /* bytes per second */
    u32 window;
    u32 prior_window; /* what recovery or ProbeRTT will restore */
    u32 pacing_gain;
    u32 window_gain;
    u32 phase;
    u8 mode;
    u8 full_pipe_rounds;
    bool filled_pipe;
    bool idle_restart;
    bool in_recovery;
    bool packet_conservation;
    bool probe_rtt_round_done;
    bool round_start;
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct bbr);
} states SEC(".maps");

static struct bbr* state_of(struct sock* sk) {
    return bpf_sk_storage_get(&states, sk, 0, 0);
}

static u64 bandwidth_of(const struct bbr* bbr) {
    return bbr->bandwidth.best[0].value;
}

/* Draft 4.2.3.2, BBRInflight: gain * BDP, and room for the bursts of the two hosts. */
static u32 in_flight_target(const struct bbr* bbr, u32 gain) {
    const u64 rtt = alpha ? bbr->smoothed_rtt : (u64)bbr->rtprop_us << RTT_SHIFT;
    const u64 bandwidth = bandwidth_of(bbr);
    u64 packets;

    if (bandwidth == 0 || rtt == 0) return INITIAL_WINDOW;
    packets = (bandwidth * (rtt >> RTT_SHIFT) / UNIT) * gain;
    packets = (packets + (1ULL << (BANDWIDTH_SHIFT - 1))) >> BANDWIDTH_SHIFT;
    return min(packets + QUANTA_IN_FLIGHT, (u64)1 << 30);
}

static void save_window(struct bbr* bbr) {
    const bool already_cut = bbr->in_recovery || bbr->mode == PROBE_RTT;

    bbr->prior_window = already_cut ? max(bbr->prior_window, bbr->window) : bbr->window;
}

static void restore_window(struct bbr* bbr) {
    bbr->window = max(bbr->window, bbr->prior_window);
    bbr->prior_window = 0;
}

static void enter_startup(struct bbr* bbr) {
    bbr->mode = STARTUP;
    bbr->pacing_gain = STARTUP_GAIN;
    bbr->window_gain = STARTUP_GAIN;
}

static u32 gain_of_phase(u32 phase) {
    return gain_cycle[phase & (MOST_PHASES - 1)];
}

static void set_phase(struct bbr* bbr, u32 phase, u64 now_us) {
    bbr->phase = phase;
    bbr->phase_start_us = now_us;
    bbr->pacing_gain = gain_of_phase(phase);
}

/* Draft 4.3.4.2: a random phase, but none with less than entry_gain_minimum. */
static void enter_probe_bw(struct bbr* bbr, u64 now_us) {
    u32 candidates = 0, choice, chosen = 0;

    for (u32 phase = 0; phase < MOST_PHASES; phase++)
        if (phase < phases && gain_of_phase(phase) >= entry_gain_minimum) candidates++;
    choice = bpf_get_prandom_u32() % max(candidates, 1U);
    for (u32 phase = 0; phase < MOST_PHASES; phase++) {
        if (phase >= phases || gain_of_phase(phase) < entry_gain_minimum) continue;
        if (choice == 0) {
            chosen = phase;
            break;
        }
        choice--;
    }
    bbr->mode = PROBE_BW;
    bbr->window_gain = WINDOW_GAIN;
    set_phase(bbr, chosen, now_us);
}

/* Draft 4.2.3.4: packet conservation for the first round of a recovery. */
static void on_loss(struct bbr* bbr, u64 now_us, u32 losses, u32 in_flight) {
    bbr->latest_loss_us = now_us;
    if (bbr->in_recovery) {
        bbr->window -= min(bbr->window, losses);
    } else {
        save_window(bbr);
        bbr->in_recovery = bbr->packet_conservation = true;
        bbr->recovery_start_us = now_us;
        bbr->window = in_flight + 1;
    }
    bbr->window = max(bbr->window, (u32)MINIMUM_WINDOW);
}

/* Conservation ends with the first packet sent after the recovery began, the recovery with a round without
 * losses. */
static void update_recovery(struct bbr* bbr, u64 sent_us, bool has_losses) {
    if (!bbr->in_recovery) return;
    if (bbr->packet_conservation && sent_us > bbr->recovery_start_us) {
        bbr->packet_conservation = false;
        if (bbr->mode != PROBE_RTT) restore_window(bbr);
    }
    if (!has_losses && sent_us > bbr->latest_loss_us) {
        bbr->in_recovery = bbr->packet_conservation = false;
        if (bbr->mode != PROBE_RTT) restore_window(bbr);
    }
}

/* Draft 4.1.1.5. Samples that the application or ProbeRTT limited count only when they are higher. */
static void update_bandwidth(struct bbr* bbr, const struct tcp_sock* tp, const struct rate_sample* rs) {
    u64 bandwidth;

    bbr->round_start = false;
    if (rs->delivered < 0 || rs->interval_us <= 0) return;
    if ((s32)(rs->prior_delivered - bbr->next_round_delivered) >= 0) {
        bbr->next_round_delivered = tp->delivered;
        bbr->rounds++;
        bbr->round_start = true;
    }
    bandwidth = ((u64)rs->delivered << BANDWIDTH_SHIFT) / (u64)rs->interval_us;
    if (bandwidth != 0 && (bandwidth >= bandwidth_of(bbr) || !rs->is_app_limited))
        update_maximum(&bbr->bandwidth, bandwidth, bbr->rounds, bandwidth_window_rounds);
}

/* Draft 4.3.4.3, BBRCheckCyclePhase. */
static void update_cycle_phase(struct bbr* bbr, const struct rate_sample* rs, u64 now_us) {
    const bool full_length = now_us - bbr->phase_start_us > bbr->rtprop_us;
    bool advance = full_length;

    if (bbr->mode != PROBE_BW) return;
    if (bbr->pacing_gain > UNIT) {
        advance =
            full_length && (rs->losses > 0 || rs->prior_in_flight >= in_flight_target(bbr, bbr->pacing_gain));
    } else if (bbr->pacing_gain < UNIT) {
        advance = full_length || rs->prior_in_flight <= in_flight_target(bbr, UNIT);
    }
    if (advance) set_phase(bbr, bbr->phase + 1 >= phases ? 0 : bbr->phase + 1, now_us);
}

/* Draft 4.3.2.2, BBRCheckFullPipe. */
static void check_full_pipe(struct bbr* bbr, const struct rate_sample* rs) {
    if (bbr->filled_pipe || !bbr->round_start || rs->is_app_limited) return;
    if (bandwidth_of(bbr) >= bbr->full_pipe_bandwidth * FULL_PIPE_GROWTH / UNIT) {
        bbr->full_pipe_bandwidth = bandwidth_of(bbr);
        bbr->full_pipe_rounds = 0;
        return;
    }
    bbr->filled_pipe = ++bbr->full_pipe_rounds >= FULL_PIPE_ROUNDS;
}

/* Draft 4.3.3. */
static void check_drain(struct bbr* bbr, u32 in_flight, u64 now_us) {
    if (bbr->mode == STARTUP && bbr->filled_pipe) {
        bbr->mode = DRAIN;
        bbr->pacing_gain = DRAIN_GAIN;
        bbr->window_gain = STARTUP_GAIN;
    }
    if (bbr->mode == DRAIN && in_flight <= in_flight_target(bbr, UNIT)) enter_probe_bw(bbr, now_us);
}

static u64 bytes_per_second(const struct tcp_sock* tp, u64 packets, u64 microseconds) {
    return packets * tp->mss_cache * USEC_PER_SEC / max(microseconds, 1ULL);
}

/* Draft 4.1.2.3, BBRUpdateRTprop. Returns whether RTprop was too old. */
static bool update_round_trip(struct bbr* bbr, const struct tcp_sock* tp, const struct rate_sample* rs,
                              u64 now_us) {
    const bool expired = bbr->rtprop_us != 0 && now_us > bbr->rtprop_stamp_us + RTPROP_WINDOW_US;
    const u32 rtt_us = rs->rtt_us;

    if (rs->rtt_us <= 0) return expired;
    if (bbr->rtprop_us == 0) {
        bbr->rtprop_us = rtt_us;
        bbr->rtprop_stamp_us = now_us;
        bbr->smoothed_rtt = (u64)rtt_us << RTT_SHIFT;
        /* Draft 4.2.1: the initial rate again, now with a measured RTT. */
        bbr->pacing_rate = bytes_per_second(tp, (u64)bbr->window * STARTUP_GAIN / UNIT, rtt_us);
    } else if ((alpha == 0 || smoothing_updates_rtprop) && (rtt_us <= bbr->rtprop_us || expired)) {
        bbr->rtprop_us = rtt_us;
        bbr->rtprop_stamp_us = now_us;
    }
    bbr->smoothed_rtt = (alpha * bbr->smoothed_rtt + (UNIT - alpha) * ((u64)rtt_us << RTT_SHIFT)) / UNIT;
    return expired;
}

static void leave_probe_rtt(struct bbr* bbr, u64 now_us) {
    bbr->rtprop_stamp_us = now_us;
    if (bbr->filled_pipe) {
        enter_probe_bw(bbr, now_us);
    } else {
        enter_startup(bbr);
    }
    restore_window(bbr);
}

/* Draft 4.3.5, BBRCheckProbeRTT and BBRHandleProbeRTT. */
static void check_probe_rtt(struct bbr* bbr, struct tcp_sock* tp, bool expired, u64 now_us) {
    const u32 in_flight = packets_in_flight(tp);
    const u32 limited = tp->delivered + in_flight;

    if (expired && !bbr->idle_restart && bbr->mode != PROBE_RTT) {
        save_window(bbr);
        bbr->mode = PROBE_RTT;
        bbr->pacing_gain = UNIT;
        bbr->window_gain = UNIT;
        bbr->probe_rtt_round_done = false;
        bbr->probe_rtt_done_us = 0;
    }
    bbr->idle_restart = false;
    if (bbr->mode != PROBE_RTT) return;
    /* What is sent from now on gives samples that are limited. */
    tp->app_limited = max(limited, 1U);
    if (bbr->probe_rtt_done_us == 0) {
        if (in_flight > MINIMUM_WINDOW) return;
        bbr->probe_rtt_done_us = now_us + PROBE_RTT_US;
        bbr->probe_rtt_round_start_us = now_us;
        return;
    }
    if (tp->first_tx_mstamp > bbr->probe_rtt_round_start_us) bbr->probe_rtt_round_done = true;
    if (bbr->probe_rtt_round_done && now_us > bbr->probe_rtt_done_us) leave_probe_rtt(bbr, now_us);
}

static u64 modelled_rate(const struct bbr* bbr, const struct tcp_sock* tp, u32 gain) {
    const u64 bytes = bandwidth_of(bbr) * tp->mss_cache * gain / UNIT;

    return (bytes * (USEC_PER_SEC * PACING_MARGIN / UNIT)) >> BANDWIDTH_SHIFT;
}

static void set_pacing_rate(struct sock* sk, const struct bbr* bbr) {
    sk->sk_pacing_rate = min(bbr->pacing_rate, (u64)sk->sk_max_pacing_rate);
}

/* Draft 4.2.1. Until the pipe is full the rate only rises. */
static void update_pacing_rate(struct sock* sk, struct bbr* bbr) {
    const u64 rate = modelled_rate(bbr, tcp_sk(sk), bbr->pacing_gain);

    if (rate > bbr->pacing_rate || (bbr->filled_pipe && rate != 0)) bbr->pacing_rate = rate;
    set_pacing_rate(sk, bbr);
}

/* Draft 4.2.3.2 to 4.2.3.6, BBRSetCwnd. */
static void update_window(struct bbr* bbr, struct tcp_sock* tp, u32 acked) {
    const u32 target = in_flight_target(bbr, bbr->window_gain);
    u32 window = bbr->window;

    if (bbr->packet_conservation) {
        window = max(window, packets_in_flight(tp) + acked);
    } else if (bbr->filled_pipe) {
        window = min(window + acked, target);
    } else if (window < target || tp->delivered < INITIAL_WINDOW) {
        window += acked;
    }
    if (bbr->mode == PROBE_RTT) window = min(window, (u32)MINIMUM_WINDOW);
    bbr->window = max(window, (u32)MINIMUM_WINDOW);
    tp->snd_cwnd = min(bbr->window, tp->snd_cwnd_clamp);
}

SEC("struct_ops/on_init")
void BPF_PROG(on_init, struct sock* sk) {
    struct bbr* bbr = bpf_sk_storage_get(&states, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    struct tcp_sock* tp = tcp_sk(sk);

    need_pacing(sk);
    if (!bbr) return;
    tp->snd_ssthresh = INFINITE_SSTHRESH;
    bbr->window = tp->snd_cwnd;
    bbr->next_round_delivered = tp->delivered;
    enter_startup(bbr);
    /* The handshake's RTT only gives the first rate: its packets are small, and RTprop is a full packet's. */
    if (tp->srtt_us != 0) {
        bbr->pacing_rate = bytes_per_second(tp, (u64)bbr->window * STARTUP_GAIN / UNIT, tp->srtt_us >> 3);
        set_pacing_rate(sk, bbr);
    }
}

/* Draft 3.5.2, BBRUpdateOnACK, in its order. */
SEC("struct_ops/on_cong_control")
void BPF_PROG(on_cong_control, struct sock* sk, u32 ack, int flag, const struct rate_sample* rs) {
    struct bbr* bbr = state_of(sk);
    struct tcp_sock* tp = tcp_sk(sk);
    const u64 now_us = tp->tcp_mstamp;
    bool expired;

    if (!bbr) return;
    if (rs->losses > 0) on_loss(bbr, now_us, rs->losses, packets_in_flight(tp));
    update_recovery(bbr, tp->first_tx_mstamp, rs->losses > 0);
    update_bandwidth(bbr, tp, rs);
    update_cycle_phase(bbr, rs, now_us);
    check_full_pipe(bbr, rs);
    check_drain(bbr, packets_in_flight(tp), now_us);
    expired = update_round_trip(bbr, tp, rs, now_us);
    check_probe_rtt(bbr, tp, expired, now_us);
    update_pacing_rate(sk, bbr);
    update_window(bbr, tp, rs->acked_sacked);
}

/* Draft 4.2.3.4 on a retransmission timeout. Linux also forgets how full the pipe seemed. */
SEC("struct_ops/on_set_state")
void BPF_PROG(on_set_state, struct sock* sk, u8 new_state) {
    struct bbr* bbr = state_of(sk);

    if (!bbr || new_state != TCP_CA_Loss) return;
    save_window(bbr);
    bbr->in_recovery = true;
    bbr->packet_conservation = false;
    bbr->latest_loss_us = tcp_sk(sk)->tcp_mstamp;
    bbr->full_pipe_bandwidth = 0;
    bbr->window = MINIMUM_WINDOW;
}

/* Draft 4.3.4.4: the first packet after silence leaves at the bandwidth, whatever the phase. */
SEC("struct_ops/on_cwnd_event")
void BPF_PROG(on_cwnd_event, struct sock* sk, enum tcp_ca_event event) {
    struct bbr* bbr = state_of(sk);

    if (!bbr || event != CA_EVENT_TX_START) return;
    bbr->idle_restart = true;
    if (bbr->mode == PROBE_BW && bandwidth_of(bbr) != 0) {
        bbr->pacing_rate = modelled_rate(bbr, tcp_sk(sk), UNIT);
        set_pacing_rate(sk, bbr);
    }
}

/* The window is this program's own. */
SEC("struct_ops/on_ssthresh")
u32 BPF_PROG(on_ssthresh, struct sock* sk) {
    return tcp_sk(sk)->snd_ssthresh;
}

SEC(".struct_ops")
struct tcp_congestion_ops program = {
    .init = (void*)on_init,
    .cong_control = (void*)on_cong_control,
    .set_state = (void*)on_set_state,
    .cwnd_event = (void*)on_cwnd_event,
    .ssthresh = (void*)on_ssthresh,
    .undo_cwnd = (void*)on_undo_cwnd,
    .name = PROGRAM_NAME,
};
