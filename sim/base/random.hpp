// The one source of randomness: xoshiro256++ streams spawned from a simulation's seed.
#pragma once

#include <bit>
#include <cstdint>

namespace quicgym {

// The purpose of a stream. Streams of different purpose or index are independent, so that adding a
// flow or switching loss on does not change what any other stream draws.
enum class RandomPurpose : std::uint64_t {
    flow_start = 1,
    controller = 2,
    forward_loss = 3,
    reverse_loss = 4,
    forward_jitter = 5,
    reverse_jitter = 6,
    short_flow_arrivals = 16,
    short_flow_sizes = 17,
    client = 18,
};

// xoshiro256++ of Blackman and Vigna, seeded through splitmix64 as its authors advise.
class Random {
public:
    Random(std::uint64_t seed, RandomPurpose purpose, std::uint64_t index) {
        std::uint64_t mixer = seed;
        mixer = split_mix(mixer) ^ static_cast<std::uint64_t>(purpose);
        mixer = split_mix(mixer) ^ index;
        for (auto& word : state_) word = split_mix(mixer);
    }

    std::uint64_t next() {
        const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
        const std::uint64_t shifted = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= shifted;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }

    // Uniform in [0, 1), 53 bits.
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

    // Uniform in 0 … bound - 1; the bias is below bound / 2^64.
    std::uint64_t below(std::uint64_t bound) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
    }

private:
    static std::uint64_t split_mix(std::uint64_t& state) {
        std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }

    std::uint64_t state_[4];
};

}  // namespace quicgym
