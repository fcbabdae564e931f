// A history in spans that double with their age: the last interval, the one before, the two before that, the
// four before those and so on.
#pragma once

#include <algorithm>
#include <cstddef>

namespace quicgym::environment {

struct DoublingSpan {
    std::size_t first;  // in intervals before now
    std::size_t last;   // the one after
};

// Calls `each` with every span up to the history's end, the latest first.
template <class Each>
void for_each_doubling_span(std::size_t history_length, Each each) {
    DoublingSpan span{0, 1};
    for (std::size_t length = 1; span.first < history_length; length *= 2) {
        each(span);
        span = {span.last, std::min(span.last + length, history_length)};
    }
}

}  // namespace quicgym::environment
