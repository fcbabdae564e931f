// ns-3 ends the process over a setting that it does not accept: everything is checked before.
#pragma once

#include "sim/scenario.hpp"

namespace quicgym::ns3_host {

// Throws std::invalid_argument that names the field.
void check_scenario(const Scenario& scenario);

}  // namespace quicgym::ns3_host
