// One table of what only one engine can do. Both engines and Scenario.check_engine refuse scenarios by it.
#pragma once

#include <string>
#include <vector>

#include "sim/base/fields.hpp"
#include "sim/scenario.hpp"

namespace quicgym {

QUICGYM_ENUM(Engine, native, ns3)

struct Capability {
    std::string name;
    std::string text;  // what it is, as the subject of a sentence
    bool native;       // whether the native engine has it
    bool ns3;
    // Returns the fields that make a scenario need it, as a scenario file has them: "wifi",
    // "flows.0.transport = tcp".
    std::vector<std::string> (*needed_by)(const Scenario& scenario);

    bool in(Engine engine) const { return engine == Engine::native ? native : ns3; }
};

const std::vector<Capability>& capabilities();

// Returns the fields of a scenario that need what the engine has not.
std::vector<std::string> lacking(const Scenario& scenario, Engine engine);

// Throws std::invalid_argument for the first of them.
void check_capabilities(const Scenario& scenario, Engine engine);

}  // namespace quicgym
