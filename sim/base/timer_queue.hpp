// The earliest of many timers: a binary heap that knows where each timer is, so that one can be moved.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/time.hpp"

namespace quicgym {

// Timers go by small numbers, which are to be added in order. Of two that are due at the same time, the one
// with the smaller number is first.
class TimerQueue {
public:
    // A timer with the next number, which is not armed.
    void add() {
        const auto number = static_cast<std::uint32_t>(heap_.size());
        places_.push_back(number);
        heap_.push_back({kNever, number});  // the last of all: it is in place
    }

    // kNever: it is not armed.
    void set(std::uint32_t number, Time time) {
        const std::size_t place = places_[number];
        heap_[place].time = time;
        if (!rise(place)) sink(place);
    }

    Time earliest() const { return heap_.empty() ? kNever : heap_.front().time; }
    std::uint32_t earliest_number() const { return heap_.front().number; }

private:
    struct Timer {
        Time time;
        std::uint32_t number;

        friend bool operator<(const Timer& a, const Timer& b) {
            return a.time != b.time ? a.time < b.time : a.number < b.number;
        }
    };

    void swap(std::size_t a, std::size_t b) {
        std::swap(heap_[a], heap_[b]);
        places_[heap_[a].number] = static_cast<std::uint32_t>(a);
        places_[heap_[b].number] = static_cast<std::uint32_t>(b);
    }

    bool rise(std::size_t place) {
        const std::size_t from = place;
        while (place > 0 && heap_[place] < heap_[(place - 1) / 2]) {
            swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        return place != from;
    }

    void sink(std::size_t place) {
        for (;;) {
            std::size_t first = place;
            for (const std::size_t child : {2 * place + 1, 2 * place + 2}) {
                if (child < heap_.size() && heap_[child] < heap_[first]) first = child;
            }
            if (first == place) return;
            swap(place, first);
            place = first;
        }
    }

    std::vector<Timer> heap_;
    std::vector<std::uint32_t> places_;  // in the heap, by number
};

}  // namespace quicgym
