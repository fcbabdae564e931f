#include "sim/environment/observation.hpp"

#include <stdexcept>

namespace quicgym::environment {

namespace {

// A function's static, because registrations run in no particular order.
std::vector<ObservationLayout>& registered() {
    static std::vector<ObservationLayout> layouts;
    return layouts;
}

}  // namespace

void register_layout(const ObservationLayout& layout) {
    const auto place = std::lower_bound(
        registered().begin(), registered().end(), layout.name,
        [](const ObservationLayout& other, std::string_view name) { return other.name < name; });
    registered().insert(place, layout);
}

const std::vector<ObservationLayout>& observation_layouts() {
    return registered();
}

const ObservationLayout& find_observation_layout(std::string_view name) {
    std::string known;
    for (const ObservationLayout& layout : registered()) {
        if (layout.name == name) return layout;
        known += (known.empty() ? "" : ", ") + std::string(layout.name);
    }
    throw std::invalid_argument("no observation layout is named '" + std::string(name) +
                                "'; there are: " + known);
}

void add_mode_elements(std::vector<Element>& elements) {
    for_each_value(ControllerMode{},
                   [&](const char* name, ControllerMode) { elements.push_back({name, 0.0F, 1.0F}); });
}

float* write_modes(ControllerMode mode, float* out) {
    for_each_value(ControllerMode{},
                   [&](const char*, ControllerMode one) { *out++ = mode == one ? 1.0F : 0.0F; });
    return out;
}

}  // namespace quicgym::environment
