// A token bucket before a queue, which drops what exceeds it, as RFC 2697 meters with a single rate.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/scenario.hpp"

namespace quicgym::net {

// The bucket is full at first. Exact: tokens are counted in 10^-9 bits.
class TokenBucket {
public:
    explicit TokenBucket(const Policer& policer)
        : rate_bits_per_second_(policer.rate_bits_per_second),
          depth_(Tokens{policer.burst_bytes} * kTokensPerByte),
          tokens_(depth_) {}

    // Whether a packet that arrives now may pass; then it takes its tokens with it.
    bool admits(Time now, std::uint64_t wire_bytes) {
        tokens_ = std::min(
            depth_, tokens_ + Tokens{rate_bits_per_second_} * static_cast<std::uint64_t>(now - updated_));
        updated_ = now;
        const Tokens needed = Tokens{wire_bytes} * kTokensPerByte;
        if (needed > tokens_) return false;
        tokens_ -= needed;
        return true;
    }

private:
    using Tokens = unsigned __int128;
    static constexpr std::uint64_t kTokensPerByte = 8'000'000'000;

    std::uint64_t rate_bits_per_second_;
    Tokens depth_;
    Tokens tokens_;
    Time updated_ = 0;
};

}  // namespace quicgym::net
