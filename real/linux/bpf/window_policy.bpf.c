/* A learned policy of the environment Window-v1, wholly in the kernel and in integers: its network chooses a
 * factor for the window at every decision. As in the simulator, the controller `guided` finds out in slow
 * start how much the path holds (controllers/guided.cpp), and the safe envelope bounds window and pacing rate
 * (controllers/envelope.cpp).
 *
 * A segment counts as a QUIC datagram of the same size on the wire. Times are microseconds of the
 * connection's clock, windows and rates are in bytes of datagrams. */
#include "kernel.h"
// clang-format off: these need kernel.h
#include "network.h"
#include "observation.h"
#include "owned_window.h"
#include "windowed_maximum.h"
// clang-format on

#define CHOICES 13
#define SMALLEST_DATAGRAM 1200   /* RFC 9000 14 */
#define DATAGRAM_OVER_SEGMENT 24 /* 52 bytes of headers with TCP and timestamps, 28 with UDP */
#define INITIAL_RTT_US 333000    /* RFC 9002 6.2.2 */
#define SLOW_START_PACING 200    /* percent of window / smoothed RTT */
#define PACING 125               /* RFC 9002 7.7 */
#define ENOUGH_SAMPLES 8         /* RFC 9406 4.2 */
#define FULL_ROUNDS 3            /* BBR draft-00 4.3.2.2 */
#define SMALLEST_WINDOW 2400     /* controllers/external.hpp */
#define LARGEST_WINDOW 100000000
#define ENVELOPE_BDPS (4 * FIXED_ONE)
#define ENVELOPE_GROWTH (FIXED_ONE + FIXED_ONE / 4)
#define FIRST_ROUNDS 2
#define PERIOD_ROUND_TRIPS 10

/* The network and the decisions; the loader sets them. */
const volatile u32 layers = 3;
const volatile u32 layer_inputs[MOST_LAYERS] = {102, 256, 128};
const volatile u32 layer_outputs[MOST_LAYERS] = {256, 128, 13};
const volatile u32 layer_weights[MOST_LAYERS] = {};
const volatile u32 layer_biases[MOST_LAYERS] = {};
const volatile u32 layer_shift[MOST_LAYERS] = {16, 16, 8};
const volatile u32 layer_rectifies[MOST_LAYERS] = {1, 1, 0};
const volatile u32 is_recent = 1;
const volatile u32 decision_us = 100000;
const volatile u32 decision_rtts_permille = 1000; /* of the smoothed RTT, where that is longer */

/* 2^x times FIXED_ONE, for the exponents of sim/environment/window_action.cpp. */
static const u32 factors[CHOICES] = {32768, 46341, 55109, 60097, 62757, 64132, 65536,
                                     66971, 68438, 71468, 77936, 92682, 131072};

struct policy {
    struct observer observer;
    s32 values[2 * MOST_WIDTH]; /* what goes into a layer, and what comes out */
    struct flow_state now;
    u64 next_decision_us;
    u64 datagram;
    u32 choice;                                                    /* in force; CHOICES: none yet */
    u32 delivered_before, lost_before, sent_before, marked_before; /* counts of the kernel at the beginning */

    /* controllers/guided.cpp */
    u64 window;
    u64 round_window;
    u64 round_rate;
    u64 round_lost;
    u64 highest_rate;
    u64 full_rate;
    u32 round_samples;
    u32 delayed_in_a_row;
    u32 rounds_without_growth;
    u32 next_round_delivered;
    bool slow_start;
    bool round_app_limited;

    /* controllers/envelope.cpp */
    bool heavy_loss;
    struct windowed_maximum delivery_rate;
    struct windowed_maximum round_bytes;
    u64 headroom;
    u64 period_start_us;
    u64 period_delivered;
    u64 period_lost;
    u64 rounds;
    u64 largest_window;
    u64 highest_pacing_rate;
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct policy);
} policies SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct network);
} networks SEC(".maps");

struct row_of_layer {
    struct policy* policy;
    u32 layer;
};

static long compute_row(u32 row, void* context) {
    const struct row_of_layer* of = context;
    const u32 number = of->layer & (MOST_LAYERS - 1), first = 0;
    const struct network* network = bpf_map_lookup_elem(&networks, &first);
    const struct layer layer = {
        layer_inputs[number], layer_outputs[number], layer_weights[number],
        layer_biases[number], layer_shift[number],   layer_rectifies[number],
    };

    if (!network || !of->policy) return 1;
    return !compute_output(network, of->policy->values, &layer, number, row);
}

static long search_age(u32 age, void* context) {
    struct policy** policy = context;

    if (!*policy || age >= known_intervals(&(*policy)->observer)) return 1;
    return !search_interval(&(*policy)->observer, age, is_recent);
}

VERIFIED_ALONE u64 search_whole_path(struct policy* policy) {
    if (!policy) return 0;
    begin_search(&policy->observer, policy->datagram);
    bpf_loop(HISTORY_LENGTH, search_age, &policy, 0);
    end_search(&policy->observer);
    return path_bdp(&policy->observer, policy->datagram);
}

VERIFIED_ALONE int observe_span(struct policy* policy, u32 span, u64 bdp) {
    if (!policy || span >= SPANS) return 1;
    write_span(&policy->observer, span, bdp, policy->datagram, policy->values + span * SPAN_FEATURES);
    return 0;
}

VERIFIED_ALONE int observe_state(struct policy* policy, u64 bdp) {
    s32* values;

    if (!policy) return 1;
    values = policy->values + SPANS * SPAN_FEATURES;
    write_state(&policy->observer, is_recent, bdp, policy->datagram, values);
    values += MODES + (is_recent ? RECENT_STATE_FEATURES : SPANS_STATE_FEATURES);
    for (u32 choice = 0; choice < CHOICES; choice++)
        values[choice] = choice == policy->choice ? FIXED_ONE : 0;
    return 0;
}

/* Writes the observation, asks the network, and returns the place of its highest value. */
VERIFIED_ALONE u32 choose(struct policy* policy) {
    struct row_of_layer of = {policy, 0};
    s32 highest = -LARGEST_VALUE - 1;
    u32 chosen = 0, from;
    u64 bdp;

    if (!policy) return CHOICES;
    bdp = search_whole_path(policy);
    for (u32 span = 0; span < SPANS; span++) observe_span(policy, span, bdp);
    observe_state(policy, bdp);
    for (u32 layer = 0; layer < MOST_LAYERS; layer++) {
        if (layer >= layers) break;
        of.layer = layer;
        bpf_loop(layer_outputs[layer] & (2 * MOST_WIDTH - 1), compute_row, &of, 0);
    }
    from = (layers & 1) * MOST_WIDTH;
    for (u32 choice = 0; choice < CHOICES; choice++) {
        const s32 value = policy->values[(from + choice) & (2 * MOST_WIDTH - 1)];

        if (value <= highest) continue;
        highest = value;
        chosen = choice;
    }
    return chosen;
}

static u64 published_window(const struct policy* policy) {
    return min(policy->window, policy->largest_window);
}

static u64 published_rate(const struct policy* policy, u64 smoothed_us) {
    const u64 percent = policy->slow_start ? SLOW_START_PACING : PACING;
    const u64 rate = policy->window * USEC_PER_SEC / max(smoothed_us, 1ULL) * percent / 100;

    return policy->highest_pacing_rate ? min(rate, policy->highest_pacing_rate) : rate;
}

/* What an observation is of, in the units of observation.h. */
static void read_state(struct policy* policy, const struct tcp_sock* tp) {
    struct flow_state* now = &policy->now;
    const u64 smoothed_us = tp->srtt_us >> 3;

    now->time_us = tp->tcp_mstamp;
    now->window_bytes = published_window(policy);
    now->pacing_rate = published_rate(policy, smoothed_us ? smoothed_us : INITIAL_RTT_US);
    now->in_flight_bytes = packets_in_flight(tp) * policy->datagram;
    now->sent_bytes = (u64)(tp->data_segs_out - policy->sent_before) * policy->datagram;
    now->delivered_bytes = (u64)(tp->delivered - policy->delivered_before) * policy->datagram;
    now->lost_bytes = (u64)(tp->lost - policy->lost_before) * policy->datagram;
    now->marks = tp->delivered_ce - policy->marked_before;
    now->smoothed_rtt_ns = now->rtt_samples ? smoothed_us * NSEC_PER_USEC : 0;
    now->mode = policy->slow_start ? 0 : 1;
}

/* real/embedding/agent.cpp: the first decision only begins. */
static void decide(struct policy* policy, const struct tcp_sock* tp, bool is_first) {
    const u64 smoothed_us = policy->now.rtt_samples ? tp->srtt_us >> 3 : INITIAL_RTT_US;
    const u64 rtts_us = smoothed_us * decision_rtts_permille / 1000;

    read_state(policy, tp);
    if (is_first) observer_start(&policy->observer, &policy->now);
    else observer_update(&policy->observer, &policy->now, policy->datagram);
    policy->choice = choose(policy);
    if (!policy->slow_start && policy->choice < CHOICES) {
        const u64 window = (published_window(policy) * factors[policy->choice]) >> FIXED_SHIFT;

        policy->window = min(max(window, (u64)SMALLEST_WINDOW), (u64)LARGEST_WINDOW);
        policy->window = max(policy->window, 2 * policy->datagram);
    }
    policy->next_decision_us = policy->now.time_us + max((u64)decision_us, rtts_us);
}

/* controllers/envelope.cpp, judge_losses. */
static void judge_losses(struct policy* policy, u64 now_us, u64 period_us) {
    const u64 all = policy->period_lost + policy->period_delivered;
    const bool heavy = policy->period_lost * 10 > all;

    if (now_us - policy->period_start_us < period_us) return;
    if (!heavy)
        policy->headroom = min((u64)ENVELOPE_BDPS, (policy->headroom * ENVELOPE_GROWTH) >> FIXED_SHIFT);
    if (heavy && policy->heavy_loss) policy->headroom = FIXED_ONE;
    policy->heavy_loss = heavy;
    policy->period_start_us = now_us;
    policy->period_delivered = policy->period_lost = 0;
}

static u64 initial_window(u64 datagram) {
    return min(10 * datagram, max(2 * datagram, 14720ULL)); /* RFC 9002 7.2 */
}

/* controllers/envelope.cpp, on_ack. */
static void update_envelope(struct policy* policy, u64 now_us, u64 rate, u64 sample_bytes, bool round_start) {
    const u64 initial = initial_window(policy->datagram);
    const u64 lowest_us = policy->now.min_rtt_ns / NSEC_PER_USEC;
    const u64 period_us = max((u64)USEC_PER_SEC, PERIOD_ROUND_TRIPS * lowest_us);
    u64 bdp, bytes, bound;

    if (lowest_us == 0) return;
    judge_losses(policy, now_us, period_us);
    update_maximum(&policy->delivery_rate, rate, now_us, period_us);
    update_maximum(&policy->round_bytes, sample_bytes, now_us, period_us);
    if (round_start) policy->rounds++;
    bdp = policy->delivery_rate.best[0].value * lowest_us / USEC_PER_SEC;
    bytes = policy->round_bytes.best[0].value;
    bound = policy->rounds > FIRST_ROUNDS ? initial * policy->headroom / ENVELOPE_BDPS : 2 * initial;
    bound = max(bound, (policy->headroom * bdp) >> FIXED_SHIFT);
    bound = max(bound, (min(policy->headroom, (u64)ENVELOPE_GROWTH) * bytes) >> FIXED_SHIFT);
    policy->largest_window = bound;
    policy->highest_pacing_rate =
        4 * max(policy->delivery_rate.best[0].value, initial * USEC_PER_SEC / lowest_us);
}

/* controllers/guided.cpp, FullPath::on_ack: by delay, by loss, or by a rate that has stopped growing. */
static bool path_is_full(struct policy* policy, const struct rate_sample* rs, u64 rate, bool round_start,
                         bool app_limited) {
    bool full = false;

    if (policy->round_window == 0) policy->round_window = policy->window;
    if (round_start && policy->round_samples > 0) {
        if (4 * policy->round_rate >= 5 * policy->full_rate) {
            policy->full_rate = policy->round_rate;
            policy->rounds_without_growth = 0;
        } else if (!policy->round_app_limited) {
            policy->rounds_without_growth++;
        }
        full =
            policy->delayed_in_a_row >= policy->round_samples || policy->rounds_without_growth >= FULL_ROUNDS;
        policy->round_window = policy->window;
        policy->round_samples = 0;
        policy->round_rate = 0;
        policy->round_lost = 0;
        policy->round_app_limited = false;
    }
    if (rs->rtt_us > 0) {
        const bool delayed = 2 * (u64)rs->rtt_us * NSEC_PER_USEC > 3 * policy->now.min_rtt_ns;

        policy->round_samples++;
        policy->delayed_in_a_row = delayed ? policy->delayed_in_a_row + 1 : 0;
    }
    policy->round_rate = max(policy->round_rate, rate);
    policy->highest_rate = max(policy->highest_rate, policy->round_rate);
    if (rs->losses > 0) policy->round_lost += rs->losses * policy->datagram;
    policy->round_app_limited = policy->round_app_limited || app_limited;
    return full || policy->delayed_in_a_row >= ENOUGH_SAMPLES ||
           policy->round_lost * 10 > policy->round_window;
}

static void slow_start(struct policy* policy, const struct tcp_sock* tp, const struct rate_sample* rs,
                       u64 rate, bool round_start) {
    const bool app_limited = tp->app_limited != 0;

    if (path_is_full(policy, rs, rate, round_start, app_limited || rs->is_app_limited)) {
        /* What is seen is an RTT old, and the window has grown since. */
        const u64 lowest_us = policy->now.min_rtt_ns / NSEC_PER_USEC;
        const u64 window = policy->highest_rate * lowest_us / USEC_PER_SEC * 5 / 4;

        policy->slow_start = false;
        policy->window = min(max(window, 2 * policy->datagram), policy->window);
    } else if (!app_limited) {
        policy->window += rs->acked_sacked * policy->datagram;
    }
}

static void publish(struct sock* sk, const struct policy* policy) {
    struct tcp_sock* tp = tcp_sk(sk);
    const u64 smoothed_us = tp->srtt_us ? tp->srtt_us >> 3 : INITIAL_RTT_US;
    const u64 rate = published_rate(policy, smoothed_us) * tp->mss_cache / max(policy->datagram, 1ULL);
    const u64 packets = published_window(policy) / max(policy->datagram, 1ULL);

    sk->sk_pacing_rate = min(rate, (u64)sk->sk_max_pacing_rate);
    tp->snd_cwnd = min(max((u32)packets, 2U), tp->snd_cwnd_clamp);
}

SEC("struct_ops/on_init")
void BPF_PROG(on_init, struct sock* sk) {
    struct policy* policy = bpf_sk_storage_get(&policies, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    struct tcp_sock* tp = tcp_sk(sk);

    need_pacing(sk);
    if (!policy) return;
    policy->datagram = max(tp->mss_cache + DATAGRAM_OVER_SEGMENT, (u32)SMALLEST_DATAGRAM);
    policy->sent_before = tp->data_segs_out;
    policy->delivered_before = tp->delivered;
    policy->lost_before = tp->lost;
    policy->marked_before = tp->delivered_ce;
    policy->next_round_delivered = tp->delivered;
    policy->window = initial_window(policy->datagram);
    policy->largest_window = 2 * policy->window;
    policy->headroom = ENVELOPE_BDPS;
    policy->choice = CHOICES;
    policy->slow_start = true;
    policy->now.start_us = policy->period_start_us = tp->tcp_mstamp;
    decide(policy, tp, true);
    publish(sk, policy);
}

SEC("struct_ops/on_cong_control")
void BPF_PROG(on_cong_control, struct sock* sk, u32 ack, int flag, const struct rate_sample* rs) {
    struct policy* policy = bpf_sk_storage_get(&policies, sk, 0, 0);
    struct tcp_sock* tp = tcp_sk(sk);
    const u64 now_us = tp->tcp_mstamp;
    u64 rate = 0, sample_bytes = 0;
    bool round_start = false;

    if (!policy) { /* the kernel had no memory for it */
        follow_reno(sk, ack, rs->acked_sacked);
        return;
    }
    if (rs->rtt_us > 0) {
        const u64 rtt_ns = (u64)rs->rtt_us * NSEC_PER_USEC;

        policy->now.rtt_samples++;
        policy->now.rtt_sum_ns += rtt_ns;
        if (policy->now.min_rtt_ns == 0 || rtt_ns < policy->now.min_rtt_ns) policy->now.min_rtt_ns = rtt_ns;
    }
    if (rs->delivered > 0 && rs->interval_us > 0) {
        sample_bytes = (u64)rs->delivered * policy->datagram;
        rate = sample_bytes * USEC_PER_SEC / (u64)rs->interval_us;
        if ((s32)(rs->prior_delivered - policy->next_round_delivered) >= 0) {
            policy->next_round_delivered = tp->delivered;
            round_start = true;
        }
    }
    policy->period_delivered += rs->acked_sacked * policy->datagram;
    if (rs->losses > 0) policy->period_lost += rs->losses * policy->datagram;
    update_envelope(policy, now_us, rate, sample_bytes, round_start);
    if (policy->slow_start && tp->delivered_ce != policy->marked_before) policy->slow_start = false;
    if (policy->slow_start) slow_start(policy, tp, rs, rate, round_start);
    if (now_us >= policy->next_decision_us) decide(policy, tp, false);
    publish(sk, policy);
}

/* RFC 9002 7.6: a second timeout without an acknowledgement between them ends slow start. */
SEC("struct_ops/on_set_state")
void BPF_PROG(on_set_state, struct sock* sk, u8 new_state) {
    struct policy* policy = bpf_sk_storage_get(&policies, sk, 0, 0);

    if (policy && new_state == TCP_CA_Loss && inet_csk(sk)->icsk_retransmits > 0) policy->slow_start = false;
}

SEC("struct_ops/on_ssthresh")
u32 BPF_PROG(on_ssthresh, struct sock* sk) {
    return tcp_reno_ssthresh(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops program = {
    .init = (void*)on_init,
    .cong_control = (void*)on_cong_control,
    .set_state = (void*)on_set_state,
    .ssthresh = (void*)on_ssthresh,
    .undo_cwnd = (void*)on_undo_cwnd,
    .name = PROGRAM_NAME,
};
