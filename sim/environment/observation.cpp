#include "sim/environment/observation.hpp"

#include "sim/environment/frame_observation.hpp"
#include "sim/environment/span_observation.hpp"

namespace quicgym::environment {

std::unique_ptr<Observer> make_observer(ObservationLayout layout, std::size_t history_length,
                                        std::uint64_t max_datagram_bytes) {
    if (layout == ObservationLayout::frames) {
        return std::make_unique<FrameObserver>(history_length, max_datagram_bytes);
    }
    return std::make_unique<SpanObserver>(history_length, max_datagram_bytes);
}

std::vector<Element> observation_elements(ObservationLayout layout, std::size_t history_length) {
    return layout == ObservationLayout::frames ? frame_elements(history_length)
                                               : span_elements(history_length);
}

}  // namespace quicgym::environment
