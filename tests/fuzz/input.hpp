// The bytes from which a fuzzing target reads its choices, and the message where something does not hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace quicgym::fuzz {

// Numbers and bytes from the front of an input; zeros where it has ended.
class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

    bool empty() const { return left_.empty(); }
    std::span<const std::uint8_t> bytes(std::size_t count) {
        const auto taken = left_.first(std::min(count, left_.size()));
        left_ = left_.subspan(taken.size());
        return taken;
    }
    std::span<const std::uint8_t> rest() { return bytes(left_.size()); }
    std::uint64_t number(std::size_t count) {
        std::uint64_t value = 0;
        for (const std::uint8_t byte : bytes(count)) value = value << 8U | byte;
        return value;
    }
    std::uint8_t byte() { return static_cast<std::uint8_t>(number(1)); }

private:
    std::span<const std::uint8_t> left_;
};

// Not assert(): it holds in every build.
inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}

}  // namespace quicgym::fuzz
