// The environments that quicgym has: what an action does to which controller, and what is observed. The
// classes of envs/ take it from here, and so do learned policies in other senders.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace quicgym::environment {

struct Environment {
    std::string_view name;
    std::string_view id;  // for Gymnasium
    std::string_view action_space;
    std::string_view controller;
    std::string_view observations;  // their layout, unless another is asked for
    bool tunes;                     // another controller, too, each by its own action space
};

inline constexpr auto kEnvironments = std::to_array<Environment>({
    {"tuning", "quicgym/Tuning-v1", "tuning[gamma,beta,gain_cycle,alpha]", "bbr", "cycle", true},
    {"rate", "quicgym/Rate-v1", "rate", "external", "spans", false},
    {"window", "quicgym/Window-v1", "window", "guided", "spans", false},
    {"easy", "quicgym/Easy-v1", "window", "guided", "spans", false},
});

// For a name or an id. Throws std::invalid_argument that lists the ids.
const Environment& find_environment(std::string_view name_or_id);

}  // namespace quicgym::environment
