// The catalogue of controllers: names, parameters, ranges, units and sources.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controllers/controller.hpp"

namespace quicgym {

// How the interval [-1, 1] covers a parameter's range, for agents that set it (parameter_scale.hpp). With a
// the coordinate, and for the offset o:
//   linear       minimum + (maximum - minimum) (1 + a) / 2
//   logarithmic  log(value + o) is linear; o is 0 unless the minimum is
//   odds         o (1 + a) / (1 - a), from 0 at -1 over o at 0 to infinity at 1
QUICGYM_ENUM(Scale, linear, logarithmic, odds)

struct ParameterSpecification {
    std::string name;
    std::vector<double> default_value;  // one number, or the list
    double minimum = 0.0;               // of each number; both ends are allowed
    double maximum = 0.0;               // may be infinity
    bool is_list = false;
    std::string unit;  // "packets", "ms", "rounds", "" for a plain ratio
    std::string description;
    std::string source;  // RFC section, draft section or paper equation
    Scale scale = Scale::linear;
    double scale_offset = 0.0;
    std::vector<std::string> choices = {};  // the names of the values 0, 1, 2 and so on; empty: plain numbers
};

struct ControllerSpecification {
    std::string name;
    std::string description;
    std::string source;
    std::vector<ParameterSpecification> parameters;  // a preset's own defaults filled in
    // Receives every parameter, already checked against its range.
    std::function<std::unique_ptr<Controller>(const ParameterValues& values,
                                              std::uint64_t max_datagram_bytes)>
        make;
};

// ControllerSpecification::make for a class that is constructed from just these two.
template <class Made>
std::unique_ptr<Controller> construct(const ParameterValues& values, std::uint64_t max_datagram_bytes) {
    return std::make_unique<Made>(values, max_datagram_bytes);
}

// A controller's entry in lists such as `quicgym show controllers`; its Registration gives it
// (registration.hpp).
struct Listing {
    static constexpr int kLast = 1'000'000;

    // Smaller numbers come first, equal ones in the order of their names.
    int place = kLast;           // in the catalogue
    int baseline_place = kLast;  // among the baselines
    // An agent decides in its place, so that it is no baseline.
    bool steered = false;
    // The controller that this one is with other defaults; empty: none.
    const char* preset_of = "";
};

struct CatalogueEntry {
    ControllerSpecification specification;
    Listing listing;
};

// Every controller, in the order in which tables show them. Throws std::logic_error, naming it, when two
// have the same name.
const std::vector<CatalogueEntry>& catalogue();

// The names of all that decide by themselves, in the order in which evaluations show them.
const std::vector<std::string>& baselines();

// Throws std::invalid_argument that names the controller and lists those that exist.
const ControllerSpecification& find_controller(const std::string& name);

// The defaults of the specification, overridden by `values`. Throws std::invalid_argument that
// names an unknown parameter (and lists the known ones) or a value out of range (with the range).
ParameterValues complete_parameters(const ControllerSpecification& specification,
                                    const ParameterValues& values);

std::unique_ptr<Controller> make_controller(const std::string& name, const ParameterValues& values,
                                            std::uint64_t max_datagram_bytes);

}  // namespace quicgym
