/* What the program steered.bpf.c and the agent in loader/agent.cpp say to one another. */
#ifndef QUICGYM_LINUX_STEERED_H
#define QUICGYM_LINUX_STEERED_H

#include <linux/types.h>

#define STEERED_MOST_FLOWS 1024

enum steered_kind { STEERED_BEGIN = 1, STEERED_SENT, STEERED_ACK, STEERED_TIMEOUT, STEERED_END };

/* Why no more is in flight: the window, or although it has room, the application or the receiver's window. */
enum steered_limit { STEERED_BY_WINDOW, STEERED_BY_APPLICATION, STEERED_BY_RECEIVER };

/* Counts are the connection's so far, so that a lost event costs nothing but its time. */
struct steered_event {
    __u64 flow;      /* of all flows so far, from 1 on */
    __u64 now_us;    /* on the clock of TCP */
    __u64 sent_us;   /* when the packets that `sent` is new for were sent */
    __u64 newest_us; /* when the newest packet that is acknowledged was sent */
    __u32 slot;
    __u32 kind;
    __u32 sent;      /* segments, those sent again included */
    __u32 delivered; /* segments */
    __u32 lost;      /* segments */
    __u32 marked;    /* segments whose ECN-CE mark came back */
    __u32 in_flight; /* segments, now */
    __u32 segment_bytes;
    __u32 limit;    /* of enum steered_limit */
    __u32 timeouts; /* in a row, before this one */
};

/* One for each slot. */
struct steered_decision {
    __u64 owner;       /* the program's: the flow that has the slot; 0: it is free */
    __u64 flow;        /* the agent's: the flow that the rest is for */
    __u64 pacing_rate; /* bytes of payload per second */
    __u64 window;      /* segments */
};

struct steered_agent {
    __u64 alive_ns; /* CLOCK_MONOTONIC of the agent's last look at the events */
};

#endif
