/* For programs with cong_control, whose window is their own: the kernel reduces none by itself, and none is
 * to be restored.
 *
 * They leave min_tso_segs to the kernel where they can. With such a hook Linux 6.18 was measured to send up
 * to half a window at once now and then, whatever the hook returns: real/linux/docs/report.md. */
#ifndef QUICGYM_LINUX_OWNED_WINDOW_H
#define QUICGYM_LINUX_OWNED_WINDOW_H

#include "kernel.h"

/* Reno's window, where the program cannot decide. */
static inline void follow_reno(struct sock* sk, u32 ack, u32 acked) {
    struct tcp_sock* tp = tcp_sk(sk);

    if (inet_csk(sk)->icsk_ca_state >= TCP_CA_CWR)
        tp->snd_cwnd = max(min(tp->snd_cwnd, tp->snd_ssthresh), 2U);
    else tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/on_undo_cwnd")
u32 BPF_PROG(on_undo_cwnd, struct sock* sk) {
    return tcp_sk(sk)->snd_cwnd;
}

#endif
