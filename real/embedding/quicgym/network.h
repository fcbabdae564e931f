/* A scenario's network in virtual time, for endpoints in any language, in C99.
 *
 * Python makes the network and hands it over as a capsule:
 *
 *     capsule = network.capsule        # of a quicgym._core.EmulatedNetwork; its name is
 * QUICGYM_NETWORK_CAPSULE
 *
 * PyCapsule_GetPointer(capsule, QUICGYM_NETWORK_CAPSULE) is a quicgym_network_interface_t, which is valid as
 * long as the capsule. Its functions need no Python: call them without the global interpreter lock.
 *
 * The network keeps no packets: a packet has a number of the caller's, which comes back when its fate is
 * known. Links, queues and random numbers are those of the native engine, and so is every arrival, to the
 * nanosecond.
 *
 * Units: times are nanoseconds from the scenario's beginning; sizes are bytes on the wire, which are those of
 * the UDP payload and QUICGYM_WIRE_OVERHEAD. Path i is that of the scenario's flow i.
 *
 * Threads: a network may be used by one thread at a time. */
#ifndef QUICGYM_NETWORK_H
#define QUICGYM_NETWORK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rises with every change that needs the caller to be compiled again. */
#define QUICGYM_NETWORK_API_VERSION 1
#define QUICGYM_NETWORK_CAPSULE "quicgym.network"
#define QUICGYM_WIRE_OVERHEAD 30

typedef struct quicgym_network quicgym_network;

enum {
    QUICGYM_DELIVERED = 0,
    QUICGYM_DROPPED = 1, /* by a queue or a policer */
    QUICGYM_LOST = 2,    /* at random, on a wire */
    QUICGYM_HELD = 3     /* by a link that stays silent for good */
};

typedef struct {
    uint64_t id;     /* of the caller's */
    int64_t time_ns; /* delivered: at the host; lost: at the wire's end; otherwise at the hop that kept it */
    uint32_t path;
    uint8_t backward; /* 1: sent from the receivers' side */
    uint8_t fate;     /* QUICGYM_DELIVERED, ... */
    uint8_t ecn;      /* RFC 3168: 0, 1 for ECT(1), 2 for ECT(0), 3 for CE */
    uint8_t reserved;
} quicgym_outcome_t;

typedef struct {
    int32_t api_version; /* compare it with QUICGYM_NETWORK_API_VERSION */
    uint32_t path_count;
    quicgym_network* network;

    /* A host sends a packet. The packets of one host come in the order in which they were sent. Returns 0. A
     * packet that should have reached a queue before the end of an earlier advance() reaches it then: the
     * result is by how many ns that is later. A negative result: the packet was refused, last_error() says
     * why. */
    int64_t (*send)(quicgym_network* network, uint64_t id, int64_t time_ns, uint32_t path, int backward,
                    uint32_t wire_bytes, int ecn);

    /* Everything at queues and on wires before `end_ns` happens. Returns how many packets have a fate by
     * then, and sets `*outcomes` to them, valid until the next call. Arrivals at hosts may lie after
     * `end_ns`. A negative result is an error. */
    int64_t (*advance)(quicgym_network* network, int64_t end_ns, const quicgym_outcome_t** outcomes);

    /* When something happens next at a queue or on a wire; INT64_MAX: nothing is on its way. */
    int64_t (*next_event)(const quicgym_network* network);

    /* What the network's last error was; "" before the first. Valid until the next error. */
    const char* (*last_error)(const quicgym_network* network);
} quicgym_network_interface_t;

#ifdef __cplusplus
}
#endif

#endif
