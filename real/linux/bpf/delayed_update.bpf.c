/* The TCP delayed window update mechanism (KSII Transactions on Internet and Information Systems 10:10, 2016;
 * "the paper" below) around the kernel's own CUBIC or Reno: cubic+ and newreno+, and without it cubic and
 * newreno with the same pacing. The readings of what the paper leaves open are those of
 * controllers/delayed_update.cpp.
 *
 * Compiled with -DCUBIC for CUBIC, without for Reno. */
#include "kernel.h"

/* The parameters; the loader sets them. */
const volatile u32 delays_updates = 1; /* 0: the kernel's controller alone */
const volatile u32 period_us = 100000;
const volatile u32 jitter_threshold_us = 30000;
const volatile u32 utilisation_threshold_permille = 990;
const volatile u32 theta_permille = 900;
const volatile u32 min_rtt_tolerance_permille = 10;

struct observation {
    u64 period_start_us; /* 0: the first period begins with the first sample */
    u64 rtt_sum_us;
    u64 resume_us; /* when the suspend timer expires */
    u32 samples;
    u32 uncongested_samples;
    u32 last_mean_rtt_us; /* 0: there is none */
    u32 min_rtt_us;
    u32 max_rtt_us;
    u32 serialisation_us; /* of one packet at the highest delivery rate */
    u32 last_ack_jiffies;
    bool suspended;   /* the paper's suspend_flag */
    bool rtt_is_high; /* the paper's flag */
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct observation);
} observations SEC(".maps");

/* The highest RTT that counts as equal to the minimum. */
static u32 uncongested_rtt(const struct observation* seen) {
    const u32 share = (u64)seen->min_rtt_us * min_rtt_tolerance_permille / 1000;
    return seen->min_rtt_us + max(share, seen->serialisation_us);
}

static void begin_period(struct observation* seen, u64 now_us) {
    seen->period_start_us = now_us;
    seen->rtt_sum_us = 0;
    seen->samples = 0;
    seen->uncongested_samples = 0;
}

#ifdef CUBIC
/* A new epoch begins from the smaller window; the old one would lead it back within a round. */
static void forget_epoch(struct sock* sk) {
    ((struct bictcp*)inet_csk(sk)->icsk_ca_priv)->epoch_start = 0;
}

/* RFC 9438 5.8: the time in which the window is held does not count. */
static void freeze_epoch(struct sock* sk, u32 jiffies_passed) {
    struct bictcp* cubic = (struct bictcp*)inet_csk(sk)->icsk_ca_priv;

    if (cubic->epoch_start != 0) cubic->epoch_start += jiffies_passed;
}
#else
static void forget_epoch(struct sock* sk) {}
static void freeze_epoch(struct sock* sk, u32 jiffies_passed) {}
#endif

/* At U = 1. Slow start is over then. */
static void cut_window(struct sock* sk) {
    struct tcp_sock* tp = tcp_sk(sk);
    const u32 window = max((u32)((u64)tp->snd_cwnd * theta_permille / 1000), 2U);

    tp->snd_cwnd = window;
    tp->snd_ssthresh = min(tp->snd_ssthresh, window);
    forget_epoch(sk);
}

/* Section 3.4, with equations 1 to 4. */
static void end_period(struct sock* sk, struct observation* seen, u64 now_us) {
    const u32 mean_rtt_us = seen->rtt_sum_us / seen->samples;
    const u32 busy_samples = seen->samples - seen->uncongested_samples;
    const u32 middle_us = seen->min_rtt_us + (seen->max_rtt_us - seen->min_rtt_us) / 2;

    if (seen->last_mean_rtt_us != 0) { /* equation 2 needs two periods */
        const s32 jitter_us = (s32)mean_rtt_us - (s32)seen->last_mean_rtt_us;
        const u32 change_us = jitter_us < 0 ? -jitter_us : jitter_us;
        const bool fully_used = seen->uncongested_samples == 0; /* U = 1 */
        const bool used =
            fully_used || (u64)busy_samples * 1000 > (u64)seen->samples * utilisation_threshold_permille;

        if (used && jitter_us > 0) {
            const u64 share = (u64)bpf_get_prandom_u32() + 1; /* equation 4: in (0, 1] of 2^32 */

            seen->suspended = true;
            seen->resume_us = now_us + ((share * seen->min_rtt_us) >> 32);
            if (fully_used) cut_window(sk);
        } else if (!used && change_us < jitter_threshold_us) {
            seen->suspended = false;
        }
    }
    /* A mean that equals the minimum is low, however little the RTT has varied so far. */
    seen->rtt_is_high = mean_rtt_us > max(middle_us, uncongested_rtt(seen));
    seen->last_mean_rtt_us = mean_rtt_us;
    begin_period(seen, now_us);
}

static void observe(struct sock* sk, struct observation* seen, u32 rtt_us) {
    const struct tcp_sock* tp = tcp_sk(sk);
    const u64 now_us = tp->tcp_mstamp;

    if (tp->rate_delivered != 0) {
        const u32 packet_us = tp->rate_interval_us / tp->rate_delivered;

        if (packet_us != 0 && (seen->serialisation_us == 0 || packet_us < seen->serialisation_us))
            seen->serialisation_us = packet_us;
    }
    seen->suspended = seen->suspended && now_us < seen->resume_us;
    if (seen->period_start_us == 0) begin_period(seen, now_us);
    if (seen->min_rtt_us == 0 || rtt_us < seen->min_rtt_us) seen->min_rtt_us = rtt_us;
    seen->max_rtt_us = max(seen->max_rtt_us, rtt_us);
    seen->rtt_sum_us += rtt_us;
    seen->samples++;
    if (rtt_us <= uncongested_rtt(seen)) seen->uncongested_samples++;
    if (now_us - seen->period_start_us >= period_us && seen->samples != 0) end_period(sk, seen, now_us);
}

SEC("struct_ops/on_init")
void BPF_PROG(on_init, struct sock* sk) {
#ifdef CUBIC
    cubictcp_init(sk);
#endif
    need_pacing(sk);
    if (delays_updates) {
        struct observation* seen = bpf_sk_storage_get(&observations, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

        if (seen) seen->last_ack_jiffies = bpf_jiffies64();
    }
}

SEC("struct_ops/on_pkts_acked")
void BPF_PROG(on_pkts_acked, struct sock* sk, const struct ack_sample* sample) {
    struct observation* seen;

#ifdef CUBIC
    cubictcp_acked(sk, sample);
#endif
    if (!delays_updates || sample->rtt_us <= 0) return;
    seen = bpf_sk_storage_get(&observations, sk, 0, 0);
    if (seen) observe(sk, seen, sample->rtt_us);
}

SEC("struct_ops/on_cong_avoid")
void BPF_PROG(on_cong_avoid, struct sock* sk, u32 ack, u32 acked) {
    if (delays_updates) {
        struct observation* seen = bpf_sk_storage_get(&observations, sk, 0, 0);

        if (seen) {
            const u32 now = bpf_jiffies64();
            const u32 passed = now - seen->last_ack_jiffies;

            seen->last_ack_jiffies = now;
            if (seen->suspended || seen->rtt_is_high) {
                freeze_epoch(sk, passed);
                return;
            }
        }
    }
#ifdef CUBIC
    cubictcp_cong_avoid(sk, ack, acked);
#else
    tcp_reno_cong_avoid(sk, ack, acked);
#endif
}

/* Section 3.3: after a loss the mechanism resets its variables and begins to watch anew. */
SEC("struct_ops/on_ssthresh")
u32 BPF_PROG(on_ssthresh, struct sock* sk) {
    if (delays_updates) {
        struct observation* seen = bpf_sk_storage_get(&observations, sk, 0, 0);

        if (seen) {
            seen->suspended = false;
            seen->rtt_is_high = false;
            seen->last_mean_rtt_us = 0;
            begin_period(seen, tcp_sk(sk)->tcp_mstamp);
        }
    }
#ifdef CUBIC
    return cubictcp_recalc_ssthresh(sk);
#else
    return tcp_reno_ssthresh(sk);
#endif
}

SEC("struct_ops/on_undo_cwnd")
u32 BPF_PROG(on_undo_cwnd, struct sock* sk) {
    return tcp_reno_undo_cwnd(sk);
}

#ifdef CUBIC
SEC("struct_ops/on_set_state")
void BPF_PROG(on_set_state, struct sock* sk, u8 state) {
    cubictcp_state(sk, state);
}

SEC("struct_ops/on_cwnd_event")
void BPF_PROG(on_cwnd_event, struct sock* sk, enum tcp_ca_event event) {
    cubictcp_cwnd_event(sk, event);
}
#endif

SEC(".struct_ops")
struct tcp_congestion_ops program = {
    .init = (void*)on_init,
    .pkts_acked = (void*)on_pkts_acked,
    .cong_avoid = (void*)on_cong_avoid,
    .ssthresh = (void*)on_ssthresh,
    .undo_cwnd = (void*)on_undo_cwnd,
#ifdef CUBIC
    .set_state = (void*)on_set_state,
    .cwnd_event = (void*)on_cwnd_event,
#endif
    .name = PROGRAM_NAME,
};
