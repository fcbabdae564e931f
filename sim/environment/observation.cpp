#include "sim/environment/observation.hpp"

#include <stdexcept>

#include "sim/environment/aurora_observation.hpp"
#include "sim/environment/frame_observation.hpp"
#include "sim/environment/orca_observation.hpp"
#include "sim/environment/span_observation.hpp"

namespace quicgym::environment {

std::unique_ptr<Observer> make_observer(ObservationLayout layout, std::size_t history_length,
                                        std::uint64_t max_datagram_bytes) {
    switch (layout) {
        case ObservationLayout::frames:
            return std::make_unique<FrameObserver>(history_length, max_datagram_bytes);
        case ObservationLayout::spans:
            return std::make_unique<SpanObserver>(history_length, max_datagram_bytes);
        case ObservationLayout::aurora:
            return std::make_unique<AuroraObserver>(history_length, max_datagram_bytes);
        case ObservationLayout::orca:
            return std::make_unique<OrcaObserver>(history_length, max_datagram_bytes);
    }
    throw std::logic_error("an observation layout without an observer");
}

std::vector<Element> observation_elements(ObservationLayout layout, std::size_t history_length) {
    switch (layout) {
        case ObservationLayout::frames:
            return frame_elements(history_length);
        case ObservationLayout::spans:
            return span_elements(history_length);
        case ObservationLayout::aurora:
            return AuroraObserver::elements(history_length);
        case ObservationLayout::orca:
            return OrcaObserver::elements(history_length);
    }
    throw std::logic_error("an observation layout without elements");
}

std::size_t observation_size(ObservationLayout layout, std::size_t history_length) {
    switch (layout) {
        case ObservationLayout::frames:
            return history_length * kFrameFeatures.size() + kStateFeatures.size();
        case ObservationLayout::spans:
            return span_count(history_length) * kSpanFeatures.size() + kSpanStateFeatures.size() + kModes;
        case ObservationLayout::aurora:
            return history_length * AuroraObserver::kFeatures.size();
        case ObservationLayout::orca:
            return history_length * OrcaObserver::kFeatures.size();
    }
    throw std::logic_error("an observation layout without a size");
}

}  // namespace quicgym::environment
