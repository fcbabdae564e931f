// The old place of sim/base/time.hpp, for controllers in other packages; gone in the next version.
#pragma once

#pragma message("sim/time.hpp has moved: include sim/base/time.hpp")

#include "sim/base/time.hpp"
