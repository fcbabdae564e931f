// The queue disciplines by name, with what each can do: both engines, the rules of scenarios and Python read
// this list. A discipline is one file in sim/net/queues/, which ends with a RegisteredDiscipline.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario.hpp"

namespace quicgym {

namespace net {
class QueueDiscipline;
struct DisciplineSettings;
}  // namespace net

struct Discipline {
    std::string name;
    bool can_mark = false;
    bool always_marks = false;
    bool counts_bytes = true;  // its limit can be in bytes
    bool has_ce_threshold = false;
    bool keeps_order = true;  // false: packets that another hop marked may overtake others of their flow
    std::string ns3_type;     // its class in ns-3; empty: there is none
    // Null for drop-tail, which both engines have without a discipline.
    std::unique_ptr<net::QueueDiscipline> (*make)(const net::DisciplineSettings& settings) = nullptr;

    bool in_ns3() const { return make == nullptr || !ns3_type.empty(); }
};

class RegisteredDiscipline {
public:
    explicit RegisteredDiscipline(const Discipline& discipline);
};

// Those that cannot mark first, drop-tail before all, then by name.
const std::vector<Discipline>& disciplines();

// Null where there is none of that name.
const Discipline* find_discipline(const std::string& name);

// Says what the discipline of a link's queue cannot do; the field is one of the queue's.
std::optional<Problem> queue_problem(const Link& link);

// Throws std::invalid_argument for it; `where` names the link.
void check_queue(const Link& link, const std::string& where);

}  // namespace quicgym
