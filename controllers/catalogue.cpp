#include "controllers/catalogue.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>

#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"

namespace quicgym {

namespace {

struct Registered {
    ControllerSpecification (*specification)();
    Listing listing;
};

// In a function, so that it exists before the first registration, whichever that is.
std::vector<Registered>& registrations() {
    static std::vector<Registered> all;
    return all;
}

std::vector<CatalogueEntry> make_catalogue() {
    std::vector<CatalogueEntry> entries;
    std::set<std::string> names;
    for (const auto& [specification, listing] : registrations()) {
        entries.push_back({specification(), listing});
        const std::string& name = entries.back().specification.name;
        if (!names.insert(name).second) {
            throw std::logic_error("two controllers are named '" + name + "'; rename one of them");
        }
    }
    std::sort(entries.begin(), entries.end(), [](const CatalogueEntry& a, const CatalogueEntry& b) {
        return std::tie(a.listing.place, a.specification.name) <
               std::tie(b.listing.place, b.specification.name);
    });
    return entries;
}

std::vector<std::string> make_baselines() {
    std::vector<std::pair<int, std::string>> found;
    for (const auto& [specification, listing] : catalogue()) {
        if (!listing.steered) found.emplace_back(listing.baseline_place, specification.name);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string> names;
    for (const auto& [place, name] : found) names.push_back(name);
    return names;
}

}  // namespace

Registration::Registration(ControllerSpecification (*specification)(), const Listing& listing) {
    registrations().push_back({specification, listing});
}

const std::vector<CatalogueEntry>& catalogue() {
    static const std::vector<CatalogueEntry> entries = make_catalogue();
    return entries;
}

const std::vector<std::string>& baselines() {
    static const std::vector<std::string> names = make_baselines();
    return names;
}

const ControllerSpecification& find_controller(const std::string& name) {
    std::vector<std::string> known;
    for (const auto& [specification, listing] : catalogue()) {
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
