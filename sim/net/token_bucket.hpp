// A token bucket, which RFC 2697 has with a single rate: of a policer, which drops what exceeds it, and of a
// shaper, which delays it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/time.hpp"
namespace quicgym::net {

// The bucket is full at first. Exact: tokens are counted in 10^-9 bits.
class TokenBucket {
public:
    // `limits` is a Policer or a Shaper.
    template <class Limits>
    explicit TokenBucket(const Limits& limits)
        : rate_bits_per_second_(limits.rate_bits_per_second),
          depth_(Tokens{limits.burst_bytes} * kTokensPerByte),
          tokens_(depth_) {}

    // Whether a packet that arrives now may pass; then it takes its tokens with it.
    bool admits(Time now, std::uint64_t wire_bytes) {
        fill(now);
        const Tokens needed = Tokens{wire_bytes} * kTokensPerByte;
        if (needed > tokens_) return false;
        tokens_ -= needed;
        return true;
    }

    // When a packet that is ready now may pass, if none takes tokens before it. kNever: it is larger than the
    // bucket.
    Time admission(Time now, std::uint64_t wire_bytes) {
        fill(now);
        const Tokens needed = Tokens{wire_bytes} * kTokensPerByte;
        if (needed <= tokens_) return now;
        if (needed > depth_) return kNever;
        return now +
               static_cast<Time>((needed - tokens_ + rate_bits_per_second_ - 1) / rate_bits_per_second_);
    }

private:
    using Tokens = unsigned __int128;
    static constexpr std::uint64_t kTokensPerByte = 8'000'000'000;

    void fill(Time now) {
        tokens_ = std::min(
            depth_, tokens_ + Tokens{rate_bits_per_second_} * static_cast<std::uint64_t>(now - updated_));
        updated_ = now;
    }

    std::uint64_t rate_bits_per_second_;
    Tokens depth_;
    Tokens tokens_;
    Time updated_ = 0;
};

}  // namespace quicgym::net
