/* What the programs use of the kernel, in place of vmlinux.h. libbpf looks the members' places up in the
 * running kernel's BTF (CO-RE), so that names count here, and order and size do not. */
#ifndef QUICGYM_LINUX_KERNEL_H
#define QUICGYM_LINUX_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
// clang-format off: these need those before them
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
// clang-format on

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
    u32 sk_pacing_status;
    unsigned long sk_pacing_rate;
    unsigned long sk_max_pacing_rate;
    u8 sk_pacing_shift;
};

struct inet_sock {
    struct sock sk;
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    u8 icsk_ca_state : 5;
    u8 icsk_retransmits;
    u64 icsk_ca_priv[13];
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    u32 snd_nxt;
    u32 snd_una;
    u32 snd_wnd;
    u32 write_seq;
    u32 mss_cache;
    u32 snd_cwnd;
    u32 snd_cwnd_clamp;
    u32 snd_ssthresh;
    u32 prior_cwnd;
    u32 srtt_us;
    u32 packets_out;
    u32 sacked_out;
    u32 lost_out;
    u32 retrans_out;
    u32 data_segs_out;
    u32 delivered;
    u32 delivered_ce;
    u32 lost;
    u32 app_limited;
    u32 rate_delivered;
    u32 rate_interval_us;
    u64 tcp_mstamp;
    u64 first_tx_mstamp;
};

/* The private state of the kernel's CUBIC. */
struct bictcp {
    u32 epoch_start;
};

struct ack_sample {
    u32 pkts_acked;
    s32 rtt_us;
    u32 in_flight;
};

struct rate_sample {
    u64 prior_mstamp;
    u32 prior_delivered;
    s32 delivered;
    long interval_us;
    long rtt_us;
    int losses;
    u32 acked_sacked;
    u32 prior_in_flight;
    bool is_app_limited;
    bool is_ack_delayed;
};

#pragma clang attribute pop

enum tcp_ca_event { CA_EVENT_TX_START };

enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };

/* The interface that a program implements. libbpf finds its members by name. */
struct tcp_congestion_ops {
    u32 (*ssthresh)(struct sock* sk);
    void (*cong_avoid)(struct sock* sk, u32 ack, u32 acked);
    void (*set_state)(struct sock* sk, u8 state);
    void (*cwnd_event)(struct sock* sk, enum tcp_ca_event event);
    void (*pkts_acked)(struct sock* sk, const struct ack_sample* sample);
    u32 (*min_tso_segs)(struct sock* sk);
    void (*cong_control)(struct sock* sk, u32 ack, int flag, const struct rate_sample* rs);
    u32 (*undo_cwnd)(struct sock* sk);
    void (*init)(struct sock* sk);
    void (*release)(struct sock* sk);
    char name[16];
};

/* The kernel's own controllers, for programs to call. */
extern u32 tcp_reno_ssthresh(struct sock* sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock* sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock* sk) __ksym;
extern void cubictcp_init(struct sock* sk) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock* sk) __ksym;
extern void cubictcp_cong_avoid(struct sock* sk, u32 ack, u32 acked) __ksym;
extern void cubictcp_state(struct sock* sk, u8 state) __ksym;
extern void cubictcp_cwnd_event(struct sock* sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock* sk, const struct ack_sample* sample) __ksym;

#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
#define USEC_PER_SEC 1000000ULL
#define NSEC_PER_USEC 1000ULL
#define INFINITE_SSTHRESH 0x7fffffff

/* The name by which sockets select the program; the loader puts a free one in its place. */
#define PROGRAM_NAME "quicgym-program"

/* The verifier gives a hook's `sk` as a socket of TCP. */
static inline struct tcp_sock* tcp_sk(const struct sock* sk) {
    return (struct tcp_sock*)sk;
}

static inline struct inet_connection_sock* inet_csk(const struct sock* sk) {
    return (struct inet_connection_sock*)sk;
}

static inline u32 packets_in_flight(const struct tcp_sock* tp) {
    return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

/* The kernel paces the socket, without a queueing discipline's help. */
static inline void need_pacing(struct sock* sk) {
    if (sk->sk_pacing_status == SK_PACING_NONE) sk->sk_pacing_status = SK_PACING_NEEDED;
}

char licence[] SEC("license") = "Dual MIT/GPL";

#endif
