/* The observation layouts `spans` and `recent` of sim/environment/spans_observation.cpp in integers. The same
 * code is compiled into the kernel's program and into the loader, whose tests compare it with the simulator's
 * floats.
 *
 * Times are microseconds, RTTs nanoseconds, rates bytes per second. What is written is in units of 1 /
 * FIXED_ONE. */
#ifndef QUICGYM_LINUX_OBSERVATION_H
#define QUICGYM_LINUX_OBSERVATION_H

#include "logarithm.h"

#define HISTORY_LENGTH 128 /* the environments' */
#define RING 256           /* a power of two above it: the verifier follows a mask */
#define SPANS 8            /* 1, 1, 2, 4, ..., 64 intervals */
#define SPAN_FEATURES 9
#define SPANS_STATE_FEATURES 6
#define RECENT_STATE_FEATURES 10
#define MODES 7
#define RECENT_US 10000000ULL
#define RECENT_INTERVALS 10
#define US_PER_S 1000000ULL
#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL

/* What a sender knows at a decision: counts since its beginning. */
struct flow_state {
    __u64 time_us;
    __u64 start_us;
    __u64 window_bytes;
    __u64 pacing_rate;
    __u64 in_flight_bytes;
    __u64 sent_bytes;
    __u64 delivered_bytes;
    __u64 lost_bytes;
    __u64 marks;
    __u64 rtt_samples;
    __u64 rtt_sum_ns;
    __u64 min_rtt_ns; /* 0: no sample yet, like the next */
    __u64 smoothed_rtt_ns;
    __u32 mode;
};

/* Sums since the beginning, at the end of an interval. */
struct interval_sums {
    __u64 time_us;
    __u64 delivered_bytes;
    __u64 sent_bytes;
    __u64 lost_bytes;
    __u64 marks;
    __u64 rtt_samples;
    __u64 rtt_ns;
    __u64 log_window; /* of whole numbers from 1 on: never below 0 */
    __u64 log_pacing_rate;
    __u64 log_in_flight;
    /* Of this interval alone. */
    __u64 mean_rtt_ns; /* without a sample the one before */
    __u64 delivery_rate;
};

struct observer {
    struct interval_sums ring[RING];
    struct flow_state previous;
    __u64 intervals;
    __u64 highest_rate;
    __u64 highest_rate_at_us;
    __u64 lowest_rtt_ns; /* 0: none yet */
    __u64 lowest_rtt_at_us;
    /* What the path is taken for, from begin_search() to end_search(). */
    __u64 reference_rate;
    __u64 base_rtt_ns;
    __u64 base_rtt_at_us;
    /* In memory for the verifier, which does not follow its values there. */
    __u64 searched_rtt_ns;
};

static inline __s32 fixed_bounded(__s64 value, __s32 least, __s32 most) {
    return value < least ? least : value > most ? most : (__s32)value;
}

#define DECADES (9 * FIXED_ONE)
#define SHARE_BOUND (31 * FIXED_ONE / 10)

static inline __s32 in_decades(__s64 value) {
    return fixed_bounded(value, -DECADES, DECADES);
}

/* log10 (1 + 1000 * min(1, part / whole)) */
static inline __s32 fixed_log_share(__u64 part, __u64 whole) {
    if (whole == 0) return 0;
    if (part > whole) part = whole;
    return fixed_bounded(fixed_log10(whole + 1000 * part) - fixed_log10(whole), 0, SHARE_BOUND);
}

/* log10 (1 + age / RTT), and 0 without an RTT. */
static inline __s32 fixed_log_age(__u64 age_us, __u64 rtt_ns) {
    return rtt_ns == 0 ? 0 : in_decades(fixed_log10(rtt_ns + age_us * NS_PER_US) - fixed_log10(rtt_ns));
}

static inline struct interval_sums* sums_at(struct observer* observer, __u64 intervals) {
    return &observer->ring[intervals & (RING - 1)];
}

static inline void observer_start(struct observer* observer, const struct flow_state* state) {
    observer->previous = *state;
}

/* After a decision interval. */
static inline void observer_update(struct observer* observer, const struct flow_state* state,
                                   __u64 datagram) {
    const struct flow_state* before = &observer->previous;
    const struct interval_sums* last = sums_at(observer, observer->intervals);
    struct interval_sums* sums = sums_at(observer, observer->intervals + 1);
    const __u64 passed_us = state->time_us - before->time_us;
    const __u64 delivered = state->delivered_bytes - before->delivered_bytes;
    const __u64 samples = state->rtt_samples - before->rtt_samples;

    sums->time_us = last->time_us + passed_us;
    sums->delivered_bytes = last->delivered_bytes + delivered;
    sums->sent_bytes = last->sent_bytes + state->sent_bytes - before->sent_bytes;
    sums->lost_bytes = last->lost_bytes + state->lost_bytes - before->lost_bytes;
    sums->marks = last->marks + state->marks - before->marks;
    sums->rtt_samples = last->rtt_samples + samples;
    sums->rtt_ns = last->rtt_ns + state->rtt_sum_ns - before->rtt_sum_ns;
    sums->mean_rtt_ns = samples > 0 ? (state->rtt_sum_ns - before->rtt_sum_ns) / samples : last->mean_rtt_ns;
    sums->log_window =
        last->log_window + fixed_log10(state->window_bytes > datagram ? state->window_bytes : datagram);
    sums->log_pacing_rate = last->log_pacing_rate + fixed_log10(state->pacing_rate);
    sums->log_in_flight = last->log_in_flight + fixed_log10(state->in_flight_bytes + datagram);
    sums->delivery_rate = passed_us > 0 ? delivered * US_PER_S / passed_us : 0;
    /* What comes as near as 5% to the highest or lowest value so far is the same again. */
    if (sums->delivery_rate * 100 >= observer->highest_rate * 95)
        observer->highest_rate_at_us = sums->time_us;
    if (sums->delivery_rate > observer->highest_rate) observer->highest_rate = sums->delivery_rate;
    if (sums->mean_rtt_ns > 0) {
        const __u64 lowest = observer->lowest_rtt_ns;

        if (lowest == 0 || sums->mean_rtt_ns * 100 <= lowest * 105)
            observer->lowest_rtt_at_us = sums->time_us;
        if (lowest == 0 || sums->mean_rtt_ns < lowest) observer->lowest_rtt_ns = sums->mean_rtt_ns;
    }
    observer->intervals++;
    observer->previous = *state;
}

/* Takes one interval into the path; returns false where the rest is too old. */
static inline bool search_interval(struct observer* observer, __u32 age, bool is_recent) {
    const __u64 now_us = sums_at(observer, observer->intervals)->time_us;
    const struct interval_sums* one = sums_at(observer, observer->intervals - age);

    if (is_recent && age >= RECENT_INTERVALS && now_us - one->time_us > RECENT_US) return false;
    if (one->delivery_rate > observer->reference_rate) observer->reference_rate = one->delivery_rate;
    if (is_recent && one->mean_rtt_ns > 0 &&
        (observer->searched_rtt_ns == 0 || one->mean_rtt_ns < observer->searched_rtt_ns)) {
        observer->searched_rtt_ns = one->mean_rtt_ns;
        observer->base_rtt_at_us = one->time_us;
    }
    return true;
}

static inline __u64 known_intervals(const struct observer* observer) {
    return observer->intervals < HISTORY_LENGTH ? observer->intervals : HISTORY_LENGTH;
}

static inline void begin_search(struct observer* observer, __u64 datagram) {
    const __u64 now_us = sums_at(observer, observer->intervals)->time_us;
    const __u64 last_us = sums_at(observer, observer->intervals - 1)->time_us;

    observer->searched_rtt_ns = 0;
    observer->reference_rate =
        observer->intervals > 0 && now_us > last_us ? datagram * US_PER_S / (now_us - last_us) : 0;
    observer->base_rtt_ns = observer->previous.min_rtt_ns;
    observer->base_rtt_at_us = now_us;
}

static inline void end_search(struct observer* observer) {
    if (observer->searched_rtt_ns > 0) observer->base_rtt_ns = observer->searched_rtt_ns;
}

static inline __u64 path_bdp(const struct observer* observer, __u64 datagram) {
    const __u64 bdp = observer->reference_rate * (observer->base_rtt_ns / NS_PER_US) / US_PER_S;

    return bdp > datagram ? bdp : datagram;
}

/* Writes the SPAN_FEATURES of one span, which is at most SPANS - 1. */
static inline void write_span(struct observer* observer, __u32 span, __u64 bdp, __u64 datagram, __s32* out) {
    const __u64 known = known_intervals(observer);
    const __u64 first = span == 0 ? 0 : 1ULL << (span - 1), end = 1ULL << span;
    const __u64 last = end < known ? end : known;
    const struct interval_sums* from = sums_at(observer, observer->intervals - last);
    const struct interval_sums* to = sums_at(observer, observer->intervals - first);
    __u64 delivered, lost, samples, rtt_ns, count;
    __s64 log_bdp;

    if (last <= first) {
        for (int i = 0; i < SPAN_FEATURES; i++) out[i] = 0;
        return;
    }
    count = last - first;
    delivered = to->delivered_bytes - from->delivered_bytes;
    lost = to->lost_bytes - from->lost_bytes;
    samples = to->rtt_samples - from->rtt_samples;
    rtt_ns = samples > 0 ? (to->rtt_ns - from->rtt_ns) / samples : to->mean_rtt_ns;
    log_bdp = fixed_log10(bdp);
    out[0] = (__s32)(count * FIXED_ONE / (end - first));
    out[1] = in_decades(
        fixed_log_ratio(delivered + datagram,
                        observer->reference_rate * (to->time_us - from->time_us) / US_PER_S + datagram));
    out[2] = in_decades(fixed_log_ratio(to->sent_bytes - from->sent_bytes + datagram, delivered + datagram));
    out[3] = in_decades(fixed_log_ratio(rtt_ns, observer->base_rtt_ns));
    out[4] = fixed_log_share(lost, lost + delivered);
    out[5] = fixed_log_share((to->marks - from->marks) * datagram, delivered);
    out[6] = in_decades((__s64)((to->log_window - from->log_window) / count) - log_bdp);
    out[7] = in_decades((__s64)((to->log_pacing_rate - from->log_pacing_rate) / count) -
                        fixed_log10(observer->reference_rate));
    out[8] = in_decades((__s64)((to->log_in_flight - from->log_in_flight) / count) - log_bdp);
}

/* Writes what follows the spans: the state, and in which mode the controller is. Returns the number of
 * values. */
static inline __u32 write_state(struct observer* observer, bool is_recent, __u64 bdp, __u64 datagram,
                                __s32* out) {
    const struct flow_state* state = &observer->previous;
    const struct interval_sums* now = sums_at(observer, observer->intervals);
    const __u64 base_ns = observer->base_rtt_ns, rtt_ns = now->mean_rtt_ns;
    const __u64 interval_us =
        observer->intervals > 0 ? now->time_us - sums_at(observer, observer->intervals - 1)->time_us : 0;
    const __u64 age_us = state->time_us - state->start_us;
    __u64 queue_bytes = 0;
    __s32 log_bdp, log_base, log_highest, log_interval, log_queue;
    __u32 count;

    /* eBCC equations 3 to 5. */
    if (rtt_ns > base_ns && rtt_ns >= NS_PER_US)
        queue_bytes = state->window_bytes * ((rtt_ns - base_ns) / NS_PER_US) / (rtt_ns / NS_PER_US);
    log_bdp = fixed_bounded(fixed_log_ratio(bdp, datagram), 0, DECADES);
    log_base = in_decades(fixed_log_ratio(base_ns, NS_PER_MS));
    log_highest =
        fixed_bounded(fixed_log_ratio(observer->highest_rate, observer->reference_rate), 0, DECADES);
    log_interval = in_decades(fixed_log_ratio(interval_us * NS_PER_US, state->smoothed_rtt_ns));
    log_queue = fixed_bounded(fixed_log_ratio(datagram + queue_bytes, datagram), 0, DECADES);
    if (is_recent) {
        out[0] = log_bdp;
        out[1] = log_base;
        out[2] = fixed_log_age(now->time_us - observer->base_rtt_at_us, base_ns);
        out[3] = fixed_bounded(fixed_log_ratio(base_ns, state->min_rtt_ns), 0, DECADES);
        out[4] = fixed_log_age(now->time_us - observer->lowest_rtt_at_us, base_ns);
        out[5] = log_highest;
        out[6] = fixed_log_age(now->time_us - observer->highest_rate_at_us, base_ns);
        out[7] = log_interval;
        out[8] = fixed_log_age(age_us, base_ns);
        out[9] = log_queue;
        count = RECENT_STATE_FEATURES;
        for (__u32 mode = 0; mode < MODES; mode++)
            out[RECENT_STATE_FEATURES + mode] = mode == state->mode ? FIXED_ONE : 0;
    } else {
        out[0] = log_bdp;
        out[1] = log_base;
        out[2] = log_highest;
        out[3] = log_interval;
        out[4] = fixed_bounded(fixed_log10(US_PER_S + age_us) - fixed_log10(US_PER_S), 0, DECADES);
        out[5] = log_queue;
        count = SPANS_STATE_FEATURES;
        for (__u32 mode = 0; mode < MODES; mode++)
            out[SPANS_STATE_FEATURES + mode] = mode == state->mode ? FIXED_ONE : 0;
    }
    return count + MODES;
}

#endif
