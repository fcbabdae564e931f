#include "sim/policy/authors/agent.hpp"

#include <array>
#include <stdexcept>

#include "controllers/parameters.hpp"
#include "sim/policy/authors/measurements.hpp"

namespace quicgym::policy {

namespace {

// The rows as `count` numbers each, through `make`, which keeps what the connection remembers.
template <std::size_t Count, class Make>
std::vector<std::vector<double>> each_row(const std::vector<std::vector<double>>& rows, Make make) {
    std::vector<std::vector<double>> result;
    for (const std::vector<double>& row : rows) {
        if (row.size() != Count) {
            throw std::invalid_argument("a row has " + std::to_string(row.size()) + " numbers; give " +
                                        std::to_string(Count));
        }
        const auto features = make(row);
        result.emplace_back(features.begin(), features.end());
    }
    return result;
}

}  // namespace

const std::vector<AgentKind>& agent_kinds() {
    static const std::vector<AgentKind> kinds = {aurora_agent(), orca_agent(), indigo_agent(),
                                                 astraea_agent()};
    return kinds;
}

const AgentKind& find_agent(const std::string& name) {
    std::vector<std::string> known;
    for (const AgentKind& kind : agent_kinds()) {
        if (kind.name == name) return kind;
        known.emplace_back(kind.name);
    }
    throw std::invalid_argument("agent = '" + name + "': give one of " + join_names(known));
}

std::vector<std::vector<double>> agent_features(const std::string& agent,
                                                const std::vector<std::vector<double>>& rows) {
    const std::string_view name = find_agent(agent).name;
    if (name == "aurora") {
        AuroraFeatures features;
        return each_row<8>(rows, [&](const std::vector<double>& row) {
            return features.of({row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]});
        });
    }
    if (name == "orca") {
        OrcaFeatures features;
        return each_row<8>(rows, [&](const std::vector<double>& row) {
            return features.of({row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]});
        });
    }
    if (name == "astraea") {
        AstraeaFeatures features;
        return each_row<9>(rows, [&](const std::vector<double>& row) {
            return features.of({row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8]});
        });
    }
    IndigoFeatures features;
    return each_row<6>(rows, [&](const std::vector<double>& row) {
        const auto state =
            features.on_ack({static_cast<std::int64_t>(row[0]), static_cast<std::int64_t>(row[1]), row[2],
                             static_cast<std::int64_t>(row[3]), row[4], row[5]});
        return state ? std::vector<double>(state->begin(), state->end()) : std::vector<double>();
    });
}

double agent_decision(const std::string& agent, double before, double output) {
    const std::string_view name = find_agent(agent).name;
    if (name == "aurora") return aurora_rate(before, output, kAuroraTrainedStep);
    if (name == "indigo") return indigo_window(before, static_cast<std::size_t>(output));
    const auto packets = static_cast<std::uint64_t>(before);
    return static_cast<double>(name == "orca" ? orca_window(packets, output)
                                              : astraea_window(packets, output));
}

}  // namespace quicgym::policy
