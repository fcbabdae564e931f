// The catalogue of controllers: names, parameters, ranges, units and sources.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controllers/controller.hpp"

namespace quicgym {

struct ParameterSpecification {
    std::string name;
    std::vector<double> default_value;  // one number, or the list
    double minimum = 0.0;               // of each number; both ends are allowed
    double maximum = 0.0;               // may be infinity
    bool is_list = false;
    std::string unit;  // "packets", "ms", "rounds", "" for a plain ratio
    std::string description;
    std::string source;  // RFC section, draft section or paper equation
};

struct ControllerSpecification {
    std::string name;
    std::string description;
    std::string source;
    std::vector<ParameterSpecification> parameters;  // a preset's own defaults filled in
    // Receives every parameter, already checked against its range.
    std::unique_ptr<Controller> (*make)(const ParameterValues& values, std::uint64_t max_datagram_bytes);
};

// Every controller, in the order in which tables show them.
const std::vector<ControllerSpecification>& catalogue();

// Throws std::invalid_argument that names the controller and lists those that exist.
const ControllerSpecification& find_controller(const std::string& name);

// The defaults of the specification, overridden by `values`. Throws std::invalid_argument that
// names an unknown parameter (and lists the known ones) or a value out of range (with the range).
ParameterValues complete_parameters(const ControllerSpecification& specification,
                                    const ParameterValues& values);

std::unique_ptr<Controller> make_controller(const std::string& name, const ParameterValues& values,
                                            std::uint64_t max_datagram_bytes);

}  // namespace quicgym
