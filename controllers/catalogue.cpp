#include "controllers/catalogue.hpp"

#include <stdexcept>

#include "controllers/bbr.hpp"
#include "controllers/cubic.hpp"
#include "controllers/delayed_update.hpp"
#include "controllers/external.hpp"
#include "controllers/guided.hpp"
#include "controllers/ibcca.hpp"
#include "controllers/ibcca_cubic.hpp"
#include "controllers/newreno.hpp"
#include "controllers/parameters.hpp"
#include "controllers/switching.hpp"
#include "controllers/vegas.hpp"

namespace quicgym {

const std::vector<ControllerSpecification>& catalogue() {
    static const std::vector<ControllerSpecification> controllers = {
        newreno_specification(),      cubic_specification(),      vegas_specification(),
        bbr_specification(),          bbr_smooth_specification(), bbr_extended_specification(),
        bbr_combined_specification(), ebcc_specification(),       ibcca_specification(),
        newreno_plus_specification(), cubic_plus_specification(), ibcca_cubic_specification(),
        switching_specification(),    external_specification(),   guided_specification(),
    };
    return controllers;
}

const ControllerSpecification& find_controller(const std::string& name) {
    std::vector<std::string> known;
    for (const auto& specification : catalogue()) {
        if (specification.name == name) return specification;
        known.push_back(specification.name);
    }
    throw std::invalid_argument("no controller is named '" + name + "'; there are: " + join_names(known));
}

ParameterValues complete_parameters(const ControllerSpecification& specification,
                                    const ParameterValues& values) {
    ParameterValues complete;
    for (const auto& parameter : specification.parameters) complete[parameter.name] = parameter.default_value;
    for (const auto& [name, numbers] : values) {
        const ParameterSpecification* found = nullptr;
        std::vector<std::string> known;
        for (const auto& parameter : specification.parameters) {
            if (parameter.name == name) found = &parameter;
            known.push_back(parameter.name);
        }
        if (found == nullptr) throw_unknown_parameter(specification.name, name, known);
        check_parameter(specification.name, *found, numbers);
        complete[name] = numbers;
    }
    return complete;
}

std::unique_ptr<Controller> make_controller(const std::string& name, const ParameterValues& values,
                                            std::uint64_t max_datagram_bytes) {
    if (max_datagram_bytes == 0)
        throw std::invalid_argument("max_datagram_bytes is 0; it must be at least 1");
    const ControllerSpecification& specification = find_controller(name);
    return specification.make(complete_parameters(specification, values), max_datagram_bytes);
}

}  // namespace quicgym
