#include "sim/environment/environments.hpp"

#include <stdexcept>

namespace quicgym::environment {

const Environment& find_environment(std::string_view name_or_id) {
    std::string known;
    for (const Environment& environment : kEnvironments) {
        if (name_or_id == environment.id || name_or_id == environment.name) return environment;
        known += (known.empty() ? "" : ", ") + std::string(environment.id);
    }
    throw std::invalid_argument("environment = '" + std::string(name_or_id) + "'; there are: " + known);
}

}  // namespace quicgym::environment
