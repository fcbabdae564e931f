/* quicgym's congestion controllers and learned policies for any QUIC stack, in C99.
 *
 * The stack sends, receives, detects losses and keeps timers. It tells a controller what happened to its
 * packets; the controller says how much may be in flight and how fast packets may leave. Delivery-rate
 * samples, rounds, RTT estimates and application-limited marks are made here. docs/how-to/c-interface.md is
 * the guide.
 *
 * Units: times are nanoseconds on a clock of the stack's that never goes backwards, from 0 to 2^62 - 1; sizes
 * are bytes of UDP payload; rates are bytes per second.
 *
 * Packets: ack-eliciting ones of the application data space, each told of when it is sent and again when it
 * is acknowledged or declared lost. The packets of the handshake are left out.
 *
 * Errors: a function that returns int returns QUICGYM_OK or an error code; after an error nothing has
 * changed. A function that returns a pointer returns NULL, one that returns a number returns 0.
 * quicgym_last_error() says what is wrong.
 *
 * Threads: an object may be used by one thread at a time, from any thread. Different objects are independent.
 * A policy never changes, so that several threads may use it. The last error is each thread's own. */
#ifndef QUICGYM_CONTROLLER_H
#define QUICGYM_CONTROLLER_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define QUICGYM_API
#else
#define QUICGYM_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Rises with every change that needs the caller to be compiled again. */
#define QUICGYM_API_VERSION 1

enum {
    QUICGYM_OK = 0,
    QUICGYM_INVALID = 1, /* an argument or a file is not what it should be */
    QUICGYM_OUT_OF_MEMORY = 2,
    QUICGYM_INTERNAL = 3 /* a fault of quicgym's */
};

typedef struct quicgym_controller quicgym_controller;
typedef struct quicgym_policy quicgym_policy;

/* What quicgym_snapshot fills in; what an algorithm does not have is 0. */
typedef struct {
    uint64_t window_bytes;
    double pacing_rate_bytes_per_s;
    uint64_t in_flight_bytes;
    uint64_t delivered_bytes; /* acknowledged so far */
    uint64_t lost_bytes;      /* declared lost so far */
    int64_t latest_rtt_ns;    /* the RTTs are 0 before the first sample */
    int64_t smoothed_rtt_ns;
    int64_t min_rtt_ns;
    double bandwidth_estimate_bytes_per_s;
    int64_t round_trip_estimate_ns;
    int32_t mode;       /* 0 slow start, 1 congestion avoidance, 2 recovery, 3 startup, 4 drain, 5 ProbeBW,
                           6 ProbeRTT */
    int32_t wants_ect1; /* 1: packets should carry ECT(1) (RFC 9331) */
} quicgym_snapshot_t;

/* "0.1.0", and the QUICGYM_API_VERSION that the library was compiled with. */
QUICGYM_API const char* quicgym_version(void);
QUICGYM_API int quicgym_api_version(void);

/* What the last error of this thread was; "" before the first. Valid until the thread's next error. */
QUICGYM_API const char* quicgym_last_error(void);

/* A controller of the catalogue, such as "cubic" or "bbr3", with its default parameters, for one connection.
 * `max_datagram_bytes` is 1200 to 65535; `seed` is that of the random numbers that BBR draws; `now_ns` is
 * when the connection begins. */
QUICGYM_API quicgym_controller* quicgym_controller_new(const char* name, uint64_t max_datagram_bytes,
                                                       uint64_t seed, int64_t now_ns);
/* A controller from outside the catalogue: `specification` is a quicgym::ControllerSpecification of this
 * version, as extension modules define it (controllers/plugin.hpp). It is not needed any more afterwards. */
QUICGYM_API quicgym_controller* quicgym_controller_of(const void* specification, uint64_t max_datagram_bytes,
                                                      uint64_t seed, int64_t now_ns);
/* NULL is allowed. */
QUICGYM_API void quicgym_controller_free(quicgym_controller* controller);

/* Replaces one parameter, a number or a list, and keeps the state. `quicgym show controllers NAME` lists
 * names and ranges. */
QUICGYM_API int quicgym_set_parameter(quicgym_controller* controller, const char* name, const double* values,
                                      size_t count);

/* The handshake is complete. `rtt_ns` is its RTT sample, a day at most, 0 where there is none. Once, before
 * the first packet; may be left out. */
QUICGYM_API int quicgym_on_handshake(quicgym_controller* controller, int64_t now_ns, int64_t rtt_ns);

/* A packet was sent. Numbers rise; up to 4096 in a row may be left out. */
QUICGYM_API int quicgym_on_sent(quicgym_controller* controller, int64_t now_ns, uint64_t packet_number,
                                uint64_t bytes);

/* For one ACK frame, in this order and with the same `now_ns`: on_ack, on_ecn, on_loss,
 * on_persistent_congestion, each only where there is something to tell.
 *
 * on_ack: packets that are acknowledged for the first time, in ascending order, those that were declared lost
 * before included. `ack_delay_ns` is the frame's ACK Delay (RFC 9000 19.3), 0 where it is not known. */
QUICGYM_API int quicgym_on_ack(quicgym_controller* controller, int64_t now_ns, int64_t ack_delay_ns,
                               const uint64_t* packet_numbers, size_t count);
/* By how much the peer's ECN-CE count rose. */
QUICGYM_API int quicgym_on_ecn(quicgym_controller* controller, int64_t now_ns, uint64_t newly_marked_packets);
/* Packets that the stack declares lost, in ascending order; also when its loss timer does so. */
QUICGYM_API int quicgym_on_loss(quicgym_controller* controller, int64_t now_ns,
                                const uint64_t* packet_numbers, size_t count);
/* RFC 9002 7.6. */
QUICGYM_API int quicgym_on_persistent_congestion(quicgym_controller* controller, int64_t now_ns);

/* The application has nothing to send although the window has room: until what is in flight now is
 * acknowledged, measured rates say nothing of the path, and the window does not grow. */
QUICGYM_API int quicgym_on_app_limited(quicgym_controller* controller, int64_t now_ns);
/* There is data, but the peer's flow control holds it back although the window has room: the window does not
 * grow (RFC 9002 7.8, RFC 9438 5.8), whereas measured rates count. */
QUICGYM_API int quicgym_on_window_unused(quicgym_controller* controller, int64_t now_ns);
/* What the application has written and the stack has not sent yet, and how often so far sending was blocked
 * by a full send buffer or by flow control (RFC 9000 4.1). Only ibcca and ibcca-cubic ask for it. */
QUICGYM_API int quicgym_set_application(quicgym_controller* controller, uint64_t unsent_bytes,
                                        uint64_t blocked_events);

/* A packet may be sent while the bytes in flight and its own are at most the window. */
QUICGYM_API uint64_t quicgym_window_bytes(quicgym_controller* controller);
/* The time between packets is their size over this rate. */
QUICGYM_API double quicgym_pacing_rate_bytes_per_s(quicgym_controller* controller);
QUICGYM_API int quicgym_snapshot(quicgym_controller* controller, quicgym_snapshot_t* snapshot);

/* A learned policy: the path of its description (.json); the weights (.safetensors) are beside it. No code of
 * the files is run. */
QUICGYM_API quicgym_policy* quicgym_policy_load(const char* path);
/* The same of the content of both files, where a stack has it in memory. */
QUICGYM_API quicgym_policy* quicgym_policy_read(const void* description, size_t description_bytes,
                                                const void* weights, size_t weights_bytes);
/* NULL is allowed; controllers that have the policy keep it. */
QUICGYM_API void quicgym_policy_free(quicgym_policy* policy);
/* A controller that the policy steers; otherwise as quicgym_controller_new. */
QUICGYM_API quicgym_controller* quicgym_policy_controller_new(const quicgym_policy* policy,
                                                              uint64_t max_datagram_bytes, uint64_t seed,
                                                              int64_t now_ns);
/* The policy observes what has happened since its last decision, and sets window and pacing rate. Call it
 * first when the connection begins, then whenever `*next_decision_ns`, which it sets, has come. */
QUICGYM_API int quicgym_policy_decide(quicgym_controller* controller, int64_t now_ns,
                                      int64_t* next_decision_ns);

#ifdef __cplusplus
}
#endif

#endif
