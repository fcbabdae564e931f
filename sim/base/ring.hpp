// Storage for a queue: a ring of a power of two that becomes larger and smaller with what is in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace quicgym {

// Elements are addressed by their position in the queue, which never wraps. Many simulations side by
// side do not fit into a processor's caches. A ring that stayed as large as slow start once made it
// would be walked through from end to end, and each of its elements would be fetched from memory. `kBehind`
// elements more are behind the last one, for what is written beyond it.
template <class Element, std::size_t kBehind = 0>
class Ring {
public:
    Ring() = default;
    // Without the memory that the original keeps for growing again.
    Ring(const Ring& other)
        : elements_(other.elements_.begin(),
                    other.elements_.begin() + static_cast<std::ptrdiff_t>(other.mask_ + 1 + kBehind)),
          mask_(other.mask_) {}
    Ring& operator=(const Ring&) = delete;
    Ring(Ring&&) noexcept = default;
    Ring& operator=(Ring&&) noexcept = default;
    ~Ring() = default;

    Element& operator[](std::uint64_t position) { return elements_[position & mask_]; }
    const Element& operator[](std::uint64_t position) const { return elements_[position & mask_]; }

    // Call it before `end` is written, where [begin, end) are the positions in use. For every packet: only
    // the test is to be inlined.
    [[gnu::always_inline]] void make_room(std::uint64_t begin, std::uint64_t end) {
        const std::uint64_t used = end - begin;
        if (used > mask_) {
            grow(begin, end);
        } else if ((end & mask_) == 0 && used <= mask_ / 4 && mask_ >= kSmallest) {
            move_to(mask_ / 2, begin, end);
        }
    }

private:
    static constexpr std::size_t kSmallest = 16;

    [[gnu::cold, gnu::noinline]] void grow(std::uint64_t begin, std::uint64_t end) {
        const std::uint64_t mask = 2 * mask_ + 1;
        if (mask + kBehind < elements_.size()) return move_to(mask, begin, end);
        std::vector<Element> larger(mask + 1 + kBehind);
        for (std::uint64_t i = begin; i != end; ++i) larger[i & mask] = elements_[i & mask_];
        elements_ = std::move(larger);
        mask_ = mask;
    }

    // Within the memory that is there, half or twice as large: where an element goes, there is none.
    [[gnu::cold, gnu::noinline]] void move_to(std::uint64_t mask, std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t i = begin; i != end; ++i) {
            if ((i & mask) != (i & mask_)) elements_[i & mask] = elements_[i & mask_];
        }
        mask_ = mask;
    }

    std::vector<Element> elements_ = std::vector<Element>(kSmallest + kBehind);
    std::uint64_t mask_ = kSmallest - 1;
};

}  // namespace quicgym
