// The yardstick of `quicgym speed`: what moving packets through first-in first-out rings costs with
// no transport, no controller and no parsing. Four hops with a fixed delay, an event per hop.
#include <array>
#include <cstdint>
#include <ctime>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/bindings/modules.hpp"

namespace quicgym::bindings {

namespace {

constexpr std::size_t kHops = 4;  // access link, bottleneck, access link, the acknowledgement's way back
constexpr std::size_t kWindow = 100;
constexpr std::size_t kCapacity = 128;
constexpr std::array<Time, kHops> kTransmission = {228'480, 761'600, 228'480, 10'000};
constexpr std::array<Time, kHops> kDelay = {20 * kMillisecond, 10 * kMillisecond, 20 * kMillisecond,
                                            50 * kMillisecond};

struct Slot {
    Time arrival;
    std::uint64_t number;
};

struct Ring {
    std::array<Slot, kCapacity> slots;
    std::uint64_t head = 0;
    std::uint64_t tail = 0;
    Time free_at = 0;
};

double cpu_nanoseconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

double bare_loop(std::uint64_t packets) {
    std::vector<Ring> hops(kHops);
    std::array<Time, kHops> next;  // arrival of each hop's oldest packet
    next.fill(kNever);
    std::uint64_t sent = 0;
    std::uint64_t finished = 0;
    const auto send = [&](std::size_t hop, Time now, std::uint64_t number) {
        Ring& ring = hops[hop];
        ring.free_at = (ring.free_at > now ? ring.free_at : now) + kTransmission[hop];
        const Time arrival = ring.free_at + kDelay[hop];
        ring.slots[ring.tail++ % kCapacity] = {arrival, number};
        next[hop] = next[hop] < arrival ? next[hop] : arrival;
    };
    const double begin = cpu_nanoseconds();
    while (sent < kWindow) send(0, 0, sent++);
    while (finished < packets) {
        const std::size_t left = next[1] < next[0] ? 1 : 0;
        const std::size_t right = next[3] < next[2] ? 3 : 2;
        const std::size_t hop = next[right] < next[left] ? right : left;
        Ring& ring = hops[hop];
        const Slot slot = ring.slots[ring.head++ % kCapacity];
        next[hop] = ring.head == ring.tail ? kNever : ring.slots[ring.head % kCapacity].arrival;
        const bool last = hop + 1 == kHops;
        finished += last;
        send(last ? 0 : hop + 1, slot.arrival, last ? sent++ : slot.number);
    }
    return (cpu_nanoseconds() - begin) / static_cast<double>(packets);
}

}  // namespace quicgym::bindings
