// The old place of sim/base/random.hpp, for controllers in other packages; gone in the next version.
#pragma once

#pragma message("sim/random.hpp has moved: include sim/base/random.hpp")

#include "sim/base/random.hpp"
