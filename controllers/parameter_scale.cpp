#include "controllers/parameter_scale.hpp"

#include <algorithm>
#include <cmath>

namespace quicgym {

namespace {

// By how much the value changes with the coordinate, up to a factor: what its rounding is relative to.
double spread_at(const ParameterSpecification& specification, double value) {
    const double above = value + specification.scale_offset;
    switch (specification.scale) {
        case Scale::logarithmic:
            return above;
        case Scale::odds:
            return above * above / specification.scale_offset;
        case Scale::linear:
            break;
    }
    return specification.maximum - specification.minimum;
}

// To a multiple of the power of ten that is 10^-5 of `spread`, or just below it. Powers of ten up to 10^22
// are exact, so a short decimal comes out as itself.
double rounded(double value, double spread) {
    const double digits = 5.0 - std::floor(std::log10(spread));
    const double power = std::round(std::pow(10.0, std::abs(digits)));
    return digits >= 0.0 ? std::round(value * power) / power : std::round(value / power) * power;
}

}  // namespace

bool has_coordinate(const ParameterSpecification& specification) {
    const double offset = specification.scale_offset;
    const bool ends = std::isfinite(specification.minimum) && std::isfinite(specification.maximum);
    switch (specification.scale) {
        case Scale::logarithmic:
            return ends && specification.minimum + offset > 0.0;
        case Scale::odds:
            return specification.minimum == 0.0 && std::isinf(specification.maximum) && offset > 0.0;
        case Scale::linear:
            break;
    }
    return ends;
}

double value_at(const ParameterSpecification& specification, double coordinate) {
    const double low = specification.minimum;
    const double high = specification.maximum;
    const double offset = specification.scale_offset;
    if (coordinate <= -1.0 || low == high) return low;
    if (coordinate >= 1.0) return high;
    double value = 0.0;
    switch (specification.scale) {
        case Scale::linear:
            value = low + (high - low) * 0.5 * (1.0 + coordinate);
            break;
        case Scale::logarithmic:
            value = (low + offset) * std::pow((high + offset) / (low + offset), 0.5 * (1.0 + coordinate)) -
                    offset;
            break;
        case Scale::odds:
            value = offset * (1.0 + coordinate) / (1.0 - coordinate);
            break;
    }
    return std::clamp(rounded(value, spread_at(specification, value)), low, high);
}

double coordinate_of(const ParameterSpecification& specification, double value) {
    const double low = specification.minimum;
    const double high = specification.maximum;
    const double offset = specification.scale_offset;
    if (value <= low) return -1.0;
    if (value >= high) return 1.0;
    double coordinate = 0.0;
    switch (specification.scale) {
        case Scale::linear:
            coordinate = 2.0 * (value - low) / (high - low) - 1.0;
            break;
        case Scale::logarithmic:
            coordinate = 2.0 * std::log((value + offset) / (low + offset)) /
                             std::log((high + offset) / (low + offset)) -
                         1.0;
            break;
        case Scale::odds:
            coordinate = (value - offset) / (value + offset);
            break;
    }
    return std::clamp(coordinate, -1.0, 1.0);
}

}  // namespace quicgym
