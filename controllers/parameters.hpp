// One table per algorithm ties its parameter structure to the catalogue: names, ranges and units
// are written once, and a preset's defaults are simply another value of the structure.
#pragma once

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "controllers/catalogue.hpp"

namespace quicgym {

// Whether a parameter that switches a rule on or off, 1 or 0, has it on.
inline bool is_on(double value) {
    return value >= 0.5;
}

template <typename Parameters>
struct ParameterRow {
    ParameterSpecification specification;  // default_value stays empty: the structure holds it
    std::vector<double> (*read)(const Parameters& parameters);
    void (*write)(Parameters& parameters, const std::vector<double>& values);

    // The scale of an agent's coordinate; linear without a call.
    ParameterRow logarithmic(double offset = 0.0) && { return with_scale(Scale::logarithmic, offset); }
    ParameterRow odds(double offset) && { return with_scale(Scale::odds, offset); }

    ParameterRow with_scale(Scale scale, double offset) {
        specification.scale = scale;
        specification.scale_offset = offset;
        return std::move(*this);
    }
};

template <typename Parameters>
using ParameterTable = std::vector<ParameterRow<Parameters>>;

// A parameter that is one number: `Member` points to a double of the structure.
template <typename Parameters, double Parameters::* Member>
ParameterRow<Parameters> number(const char* name, double minimum, double maximum, const char* unit,
                                const char* description, const char* source) {
    return {{.name = name,
             .default_value = {},
             .minimum = minimum,
             .maximum = maximum,
             .is_list = false,
             .unit = unit,
             .description = description,
             .source = source},
            [](const Parameters& parameters) { return std::vector<double>{parameters.*Member}; },
            [](Parameters& parameters, const std::vector<double>& values) {
                parameters.*Member = values.front();
            }};
}

// A parameter that is one of several named values; `Member` is the value's place among them.
template <typename Parameters, double Parameters::* Member>
ParameterRow<Parameters> choice(const char* name, std::vector<std::string> choices, const char* description,
                                const char* source) {
    const auto last = static_cast<double>(choices.size() - 1);
    ParameterRow<Parameters> row = number<Parameters, Member>(name, 0.0, last, "", description, source);
    row.specification.choices = std::move(choices);
    return row;
}

// A parameter that is a list of numbers, each of them within the range.
template <typename Parameters, std::vector<double> Parameters::* Member>
ParameterRow<Parameters> list(const char* name, double minimum, double maximum, const char* unit,
                              const char* description, const char* source) {
    return {{.name = name,
             .default_value = {},
             .minimum = minimum,
             .maximum = maximum,
             .is_list = true,
             .unit = unit,
             .description = description,
             .source = source},
            [](const Parameters& parameters) { return parameters.*Member; },
            [](Parameters& parameters, const std::vector<double>& values) { parameters.*Member = values; }};
}

inline std::string join_names(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

inline bool in_range(const ParameterSpecification& specification, double value) {  // NaN is not
    return value >= specification.minimum && value <= specification.maximum;
}

// Throws std::invalid_argument that names controller, parameter, value and range.
[[noreturn]] inline void throw_wrong_parameter(const std::string& controller,
                                               const ParameterSpecification& specification,
                                               const std::vector<double>& values) {
    std::ostringstream range;
    range << "[" << specification.minimum << ", " << specification.maximum << "]";
    if (!specification.unit.empty()) range << " " << specification.unit;
    std::ostringstream text;
    text << "parameter '" << specification.name << "' of controller '" << controller << "' ";
    if (values.empty() || (!specification.is_list && values.size() != 1)) {
        text << "takes " << (specification.is_list ? "a list of at least one number" : "one number")
             << ", not " << values.size() << "; the range is " << range.str();
    } else {
        const auto is_outside = [&](double value) { return !in_range(specification, value); };
        text << "is " << *std::find_if(values.begin(), values.end(), is_outside) << ", outside the range "
             << range.str();
    }
    throw std::invalid_argument(text.str());
}

// Agents set parameters at every step, so no text is made for values that are right.
inline void check_parameter(const std::string& controller, const ParameterSpecification& specification,
                            const std::vector<double>& values) {
    const bool right_count = specification.is_list ? !values.empty() : values.size() == 1;
    const auto is_right = [&](double value) { return in_range(specification, value); };
    if (right_count && std::all_of(values.begin(), values.end(), is_right)) return;
    throw_wrong_parameter(controller, specification, values);
}

// Throws std::invalid_argument that names what is unknown and lists what exists.
[[noreturn]] inline void throw_unknown_parameter(const std::string& controller, const std::string& name,
                                                 const std::vector<std::string>& known) {
    throw std::invalid_argument("controller '" + controller + "' has no parameter '" + name +
                                "'; it has: " + join_names(known));
}

template <typename Parameters>
std::vector<ParameterSpecification> specifications(const ParameterTable<Parameters>& table,
                                                   const Parameters& defaults) {
    std::vector<ParameterSpecification> result;
    for (const auto& row : table) {
        result.push_back(row.specification);
        result.back().default_value = row.read(defaults);
    }
    return result;
}

template <typename Parameters>
ParameterValues to_values(const ParameterTable<Parameters>& table, const Parameters& parameters) {
    ParameterValues values;
    for (const auto& row : table) values[row.specification.name] = row.read(parameters);
    return values;
}

// `parameters` with the named values replaced; checks all of them before it returns any.
template <typename Parameters>
Parameters with_values(const ParameterTable<Parameters>& table, const std::string& controller,
                       Parameters parameters, const ParameterValues& values) {
    for (const auto& [name, numbers] : values) {
        const ParameterRow<Parameters>* found = nullptr;
        for (const auto& row : table) {
            if (row.specification.name == name) found = &row;
        }
        if (found == nullptr) {
            std::vector<std::string> known;
            for (const auto& row : table) known.push_back(row.specification.name);
            throw_unknown_parameter(controller, name, known);
        }
        check_parameter(controller, found->specification, numbers);
        found->write(parameters, numbers);
    }
    return parameters;
}

// Selects from `values` those that the table has, or those that it does not have. A controller that adds
// parameters to another's needs this.
template <typename Parameters>
ParameterValues select(const ParameterTable<Parameters>& table, const ParameterValues& values,
                       bool in_table) {
    ParameterValues result;
    for (const auto& [name, numbers] : values) {
        const auto is_named = [&name = name](const auto& row) { return row.specification.name == name; };
        if (std::any_of(table.begin(), table.end(), is_named) == in_table) result[name] = numbers;
    }
    return result;
}

}  // namespace quicgym
