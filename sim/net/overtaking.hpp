// The order in which one flow's packets come off a wire on which they may overtake one another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/ring.hpp"
#include "sim/base/time.hpp"
#include "sim/net/link.hpp"

namespace quicgym::net {

// Packets are positions in a PacketRing.
class Overtaking {
public:
    void put_on_wire(const Transit& transit, std::uint64_t position) {
        on_wire_.push_back({transit, position});
        std::push_heap(on_wire_.begin(), on_wire_.end(), Later{});
    }

    // Calls `take_off(arrival, position)` with what the wire delivers before `end`, in the order of arrival;
    // of two packets that arrive at once, the one whose transmission began first is first, which over a
    // rerouted path need not be the one that was sent first.
    template <class TakeOff>
    void deliver(Time end, TakeOff take_off) {
        while (!on_wire_.empty() && on_wire_.front().transit.arrival < end) {
            const OnWire next = on_wire_.front();
            std::pop_heap(on_wire_.begin(), on_wire_.end(), Later{});
            on_wire_.pop_back();
            take_off(next.transit.arrival, next.position);
            delivered_.make_room(first_, last_);
            delivered_[last_++] = next.position;
        }
    }

    Time next_on_wire() const { return on_wire_.empty() ? kNever : on_wire_.front().transit.arrival; }

    bool has_delivered() const { return first_ != last_; }
    std::uint64_t first_delivered() const { return delivered_[first_]; }
    void pop_delivered() { ++first_; }

private:
    struct OnWire {
        Transit transit;
        std::uint64_t position;
    };
    struct Later {  // the earliest is the heap's largest
        bool operator()(const OnWire& a, const OnWire& b) const {
            return a.transit != b.transit ? a.transit > b.transit : a.position > b.position;
        }
    };

    std::vector<OnWire> on_wire_;
    Ring<std::uint64_t> delivered_;
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
};

}  // namespace quicgym::net
