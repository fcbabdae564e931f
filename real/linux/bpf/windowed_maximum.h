/* The maximum over a window that slides, by its best three samples, of which each is older and higher than
 * the next: Kathleen Nichols' algorithm, as in controllers/windowed_extreme.hpp. Positions are rounds or
 * times. */
#ifndef QUICGYM_LINUX_WINDOWED_MAXIMUM_H
#define QUICGYM_LINUX_WINDOWED_MAXIMUM_H

struct positioned {
    __u64 value;
    __u64 position;
};

struct windowed_maximum {
    struct positioned best[3];
};

static inline void update_maximum(struct windowed_maximum* maximum, __u64 value, __u64 position,
                                  __u64 window) {
    struct positioned* best = maximum->best;
    const struct positioned now = {value, position};
    __u64 age;

    if (value >= best[0].value || position - best[2].position > window) {
        best[0] = best[1] = best[2] = now;
        return;
    }
    if (value >= best[1].value) {
        best[1] = best[2] = now;
    } else if (value >= best[2].value) {
        best[2] = now;
    }
    age = position - best[0].position;
    if (age > window) {
        best[0] = best[1];
        best[1] = best[2];
        best[2] = now;
        if (position - best[0].position > window) {
            best[0] = best[1];
            best[1] = best[2];
        }
    } else if (best[1].position == best[0].position && age > window / 4) {
        best[1] = best[2] = now;
    } else if (best[2].position == best[1].position && age > window / 2) {
        best[2] = now;
    }
}

#endif
