/* Dense layers in integers: 16-bit weights, sums of 64 bits. The same code is in the kernel's program and in
 * the loader. Values that go in and come out are in units of 1 / FIXED_ONE. */
#ifndef QUICGYM_LINUX_NETWORK_H
#define QUICGYM_LINUX_NETWORK_H

#include "logarithm.h"

#define MOST_LAYERS 4
#define MOST_WIDTH 256      /* inputs and outputs of a layer */
#define MOST_WEIGHTS 131072 /* of all layers: 256 KiB */
#define MOST_BIASES 1024
#define LARGEST_VALUE (1LL << 30)

struct layer {
    __u32 inputs;
    __u32 outputs;
    __u32 weights; /* place of the first one; a row for each output */
    __u32 biases;
    __u32 shift; /* a weight is a whole number over 2^shift */
    __u32 rectifies;
};

struct network {
    __s64 biases[MOST_BIASES]; /* times 2^(FIXED_SHIFT + shift) */
    __s16 weights[MOST_WEIGHTS + MOST_WIDTH];
};

/* Computes one output of a layer. Layers take turns in the two halves of `values`: the first one, number 0,
 * reads the lower half. Returns false for a layer that does not fit. */
static inline bool compute_output(const struct network* network, __s32* values, const struct layer* layer,
                                  __u32 number, __u32 row) {
    const __u32 from = (number & 1) * MOST_WIDTH, to = MOST_WIDTH - from;
    const __u32 inputs = layer->inputs, shift = layer->shift & 31;
    const __s16* weights;
    __u32 at = layer->weights + row * inputs;
    __s64 sum;

    if (row >= MOST_WIDTH || at >= MOST_WEIGHTS || shift == 0) return false;
    asm volatile("" : "+r"(at)); /* or the compiler would check something that the verifier cannot use */
    if (at >= MOST_WEIGHTS) return false;
    weights = &network->weights[at];
    sum = network->biases[(layer->biases + row) & (MOST_BIASES - 1)] + (1LL << (shift - 1));
    for (__u32 i = 0; i < MOST_WIDTH; i++) {
        if (i >= inputs) break;
        sum += (__s64)values[(from + i) & (2 * MOST_WIDTH - 1)] * weights[i];
    }
    sum >>= shift;
    if (layer->rectifies && sum < 0) sum = 0;
    if (sum > LARGEST_VALUE) sum = LARGEST_VALUE;
    if (sum < -LARGEST_VALUE) sum = -LARGEST_VALUE;
    values[(to + row) & (2 * MOST_WIDTH - 1)] = (__s32)sum;
    return true;
}

#endif
