// How a controller becomes one of quicgym's own: its .cpp holds a Registration, and nothing else names it.
//
//     const Registration registered(aimd_specification);
#pragma once

#include "controllers/catalogue.hpp"

namespace quicgym {

class Registration {
public:
    // Only keeps both, for the catalogue, which is made when somebody first asks for it: registrations
    // are static objects, and those of different files are made in any order.
    Registration(ControllerSpecification (*specification)(), const Listing& listing = {});
};

}  // namespace quicgym
