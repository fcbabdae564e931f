// A parameter's range as the interval [-1, 1]: how agents see and set it. The catalogue says for each
// parameter which scale it has; these are the formulas.
#pragma once

#include "controllers/catalogue.hpp"

namespace quicgym {

// Whether the parameter's scale covers its range; a range without end needs Scale::odds.
bool has_coordinate(const ParameterSpecification& specification);

// The value at a coordinate from -1, the minimum, to 1, the maximum. Rounded to about five digits, so that
// what a coordinate in single precision stands for is again the number that was meant, such as 0.9.
double value_at(const ParameterSpecification& specification, double coordinate);

// The coordinate of a value within the range.
double coordinate_of(const ParameterSpecification& specification, double value);

}  // namespace quicgym
