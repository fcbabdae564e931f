/* Any controller of quicgym's C interface, or policy, drives the connection: the agent, a thread of the
 * process that has loaded this program, gets the events and answers with window and pacing rate. Nothing here
 * waits for the agent. If it stops, Reno takes over. */
#include "kernel.h"
// clang-format off: these need kernel.h
#include "owned_window.h"
#include "steered.h"
// clang-format on

#define AGENT_SILENT_NS 1000000000ULL
#define PACING_PERCENT 125ULL /* of Reno: RFC 9002 7.7 */
#define MS_PER_SEC 1000
#define NO_SLOT STEERED_MOST_FLOWS

struct flow {
    u64 number;
    u64 sent_us; /* when what is sent next will have been sent, as far as is known */
    u32 slot;
    u32 told_sent; /* segments that the agent knows to be sent */
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct flow);
} flows SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4 << 20);
} events SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, STEERED_MOST_FLOWS);
    __type(key, u32);
    __type(value, struct steered_decision);
} decisions SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct steered_agent);
} agents SEC(".maps");

u64 last_flow = 0;

struct search {
    u64 flow;
    u32 slot;
};

static long take_slot(u32 slot, void* context) {
    struct search* search = context;
    struct steered_decision* decision = bpf_map_lookup_elem(&decisions, &slot);

    if (!decision || __sync_val_compare_and_swap(&decision->owner, 0, search->flow) != 0) return 0;
    search->slot = slot;
    return 1;
}

static u32 limit_of(const struct tcp_sock* tp) {
    const s32 allowed = tp->snd_una + tp->snd_wnd - tp->snd_nxt; /* bytes, by the receiver */

    if (tp->app_limited != 0) return STEERED_BY_APPLICATION;
    if (tp->write_seq != tp->snd_nxt && allowed < (s32)tp->mss_cache && packets_in_flight(tp) < tp->snd_cwnd)
        return STEERED_BY_RECEIVER;
    return STEERED_BY_WINDOW;
}

/* Without a wake-up: the agent looks by itself, which costs the kernel less than a tenth. */
static void tell(struct sock* sk, struct flow* flow, u32 kind) {
    const struct tcp_sock* tp = tcp_sk(sk);
    struct steered_event* event;

    if (flow->slot == NO_SLOT) return;
    event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) return;
    event->flow = flow->number;
    event->now_us = tp->tcp_mstamp;
    event->sent_us = flow->sent_us;
    event->newest_us = tp->first_tx_mstamp;
    event->slot = flow->slot;
    event->kind = kind;
    event->sent = tp->data_segs_out;
    event->delivered = tp->delivered;
    event->lost = tp->lost;
    event->marked = tp->delivered_ce;
    event->in_flight = packets_in_flight(tp);
    event->segment_bytes = tp->mss_cache;
    event->limit = limit_of(tp);
    event->timeouts = inet_csk(sk)->icsk_retransmits;
    flow->told_sent = tp->data_segs_out;
    bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* Takes what the agent has decided. Returns false where there is no agent. */
static bool follow_agent(struct sock* sk, const struct flow* flow) {
    const u32 slot = flow->slot, first = 0;
    const struct steered_agent* agent = bpf_map_lookup_elem(&agents, &first);
    const struct steered_decision* decision = bpf_map_lookup_elem(&decisions, &slot);
    struct tcp_sock* tp = tcp_sk(sk);

    if (!decision || !agent || bpf_ktime_get_ns() - agent->alive_ns > AGENT_SILENT_NS) return false;
    if (decision->flow != flow->number) return true; /* its first decision is on its way */
    tp->snd_cwnd = min(max((u32)decision->window, 1U), tp->snd_cwnd_clamp);
    sk->sk_pacing_rate = min(decision->pacing_rate, (u64)sk->sk_max_pacing_rate);
    return true;
}

static void be_paced_reno(struct sock* sk, u32 ack, u32 acked) {
    const struct tcp_sock* tp = tcp_sk(sk);
    const u64 rtt_us = tp->srtt_us >> 3;

    follow_reno(sk, ack, acked);
    if (rtt_us != 0) {
        const u64 rate = (u64)tp->snd_cwnd * tp->mss_cache * USEC_PER_SEC / rtt_us * PACING_PERCENT / 100;

        sk->sk_pacing_rate = min(rate, (u64)sk->sk_max_pacing_rate);
    }
}

SEC("struct_ops/on_init")
void BPF_PROG(on_init, struct sock* sk) {
    struct flow* flow = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    struct search search = {0, NO_SLOT};

    need_pacing(sk);
    if (!flow) return;
    search.flow = __sync_fetch_and_add(&last_flow, 1) + 1;
    bpf_loop(STEERED_MOST_FLOWS, take_slot, &search, 0);
    flow->number = search.flow;
    flow->slot = search.slot;
    flow->sent_us = tcp_sk(sk)->tcp_mstamp;
    tell(sk, flow, STEERED_BEGIN);
}

SEC("struct_ops/on_release")
void BPF_PROG(on_release, struct sock* sk) {
    struct flow* flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    struct steered_decision* decision;
    u32 slot;

    if (!flow) return;
    slot = flow->slot;
    tell(sk, flow, STEERED_END);
    decision = bpf_map_lookup_elem(&decisions, &slot);
    if (decision) __sync_val_compare_and_swap(&decision->owner, flow->number, 0);
}

/* As many packets as the kernel sends at once by itself: those of a millisecond, and two at least. Linux 6.18
 * now and then does not mind what the hook returns, and sends what the window has room for. */
static void bound_burst(struct sock* sk) {
    struct tcp_sock* tp = tcp_sk(sk);
    const u64 packets = sk->sk_pacing_rate / MS_PER_SEC / max(tp->mss_cache, 1U);

    tp->snd_cwnd = min((u64)tp->snd_cwnd, packets_in_flight(tp) + max(packets, 2ULL));
}

/* The kernel asks before it sends, and has no other hook there. What it has sent since, it sent right after
 * it had asked before. */
SEC("struct_ops/on_min_tso_segs")
u32 BPF_PROG(on_min_tso_segs, struct sock* sk) {
    struct flow* flow = bpf_sk_storage_get(&flows, sk, 0, 0);
    const struct tcp_sock* tp = tcp_sk(sk);

    if (!flow) return 1;
    if (tp->data_segs_out != flow->told_sent) tell(sk, flow, STEERED_SENT);
    flow->sent_us = tp->tcp_mstamp;
    if (follow_agent(sk, flow)) bound_burst(sk);
    return 1;
}

SEC("struct_ops/on_cong_control")
void BPF_PROG(on_cong_control, struct sock* sk, u32 ack, int flag, const struct rate_sample* rs) {
    struct flow* flow = bpf_sk_storage_get(&flows, sk, 0, 0);

    if (!flow || !follow_agent(sk, flow)) be_paced_reno(sk, ack, rs->acked_sacked);
    if (!flow) return;
    tell(sk, flow, STEERED_ACK);
    flow->sent_us = tcp_sk(sk)->tcp_mstamp; /* packets are sent again right after this */
}

SEC("struct_ops/on_set_state")
void BPF_PROG(on_set_state, struct sock* sk, u8 new_state) {
    struct flow* flow = bpf_sk_storage_get(&flows, sk, 0, 0);

    if (flow && new_state == TCP_CA_Loss) tell(sk, flow, STEERED_TIMEOUT);
}

SEC("struct_ops/on_ssthresh")
u32 BPF_PROG(on_ssthresh, struct sock* sk) {
    return tcp_reno_ssthresh(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops program = {
    .init = (void*)on_init,
    .release = (void*)on_release,
    .min_tso_segs = (void*)on_min_tso_segs,
    .cong_control = (void*)on_cong_control,
    .set_state = (void*)on_set_state,
    .ssthresh = (void*)on_ssthresh,
    .undo_cwnd = (void*)on_undo_cwnd,
    .name = PROGRAM_NAME,
};
