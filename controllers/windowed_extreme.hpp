// The best of what was seen within a window that slides: the highest or the lowest.
#pragma once

#include <cstdint>

namespace quicgym {

// In constant time and space, after Kathleen Nichols: the best sample of the window, and the best of what
// came after it, twice, so that a successor is at hand when the best one leaves the window. `Better` is
// std::greater or std::less; positions, rounds or nanoseconds, never fall.
template <class Value, class Better>
class WindowedExtreme {
public:
    // `none`: what best() is before the first sample; every sample is better.
    explicit WindowedExtreme(Value none) : samples_{{none, 0}, {none, 0}, {none, 0}} {}

    Value best() const { return samples_[0].value; }

    void update(Value value, std::uint64_t position, std::uint64_t window) {
        const Sample sample{value, position};
        if (!is_worse(value, samples_[0].value) || position - samples_[2].position > window) {
            samples_[0] = samples_[1] = samples_[2] = sample;
            return;
        }
        if (!is_worse(value, samples_[1].value)) {
            samples_[1] = samples_[2] = sample;
        } else if (!is_worse(value, samples_[2].value)) {
            samples_[2] = sample;
        }
        const std::uint64_t age = position - samples_[0].position;
        if (age > window) {
            // The best one has expired; its successor may have, too, but then not the third.
            promote(sample);
            if (position - samples_[0].position > window) promote(sample);
        } else if (samples_[1].position == samples_[0].position && age > window / 4) {
            // A quarter of the window without a second choice: take one from the rest.
            samples_[1] = samples_[2] = sample;
        } else if (samples_[2].position == samples_[1].position && age > window / 2) {
            samples_[2] = sample;
        }
    }

private:
    struct Sample {
        Value value;
        std::uint64_t position;
    };

    static bool is_worse(Value value, Value other) { return Better()(other, value); }

    void promote(const Sample& sample) {
        samples_[0] = samples_[1];
        samples_[1] = samples_[2];
        samples_[2] = sample;
    }

    Sample samples_[3];
};

}  // namespace quicgym
