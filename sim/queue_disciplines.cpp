#include "sim/queue_disciplines.hpp"

#include <algorithm>
#include <tuple>

namespace quicgym {

namespace {

std::vector<Discipline>& registered_disciplines() {
    static std::vector<Discipline> all{{.name = kDropTail}};
    return all;
}

// "codel, pie or red", of the disciplines for which `condition` holds.
template <class Condition>
std::string names_where(Condition condition) {
    std::vector<std::string> names;
    for (const Discipline& discipline : disciplines()) {
        if (condition(discipline)) names.push_back(discipline.name);
    }
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
        text += names[i];
    }
    return text;
}

}  // namespace

RegisteredDiscipline::RegisteredDiscipline(const Discipline& discipline) {
    registered_disciplines().push_back(discipline);
}

const std::vector<Discipline>& disciplines() {
    static const std::vector<Discipline> sorted = [] {
        std::vector<Discipline> all = registered_disciplines();
        const auto key = [](const Discipline& discipline) {
            return std::tuple(discipline.can_mark, discipline.name != kDropTail, discipline.name);
        };
        std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
        return all;
    }();
    return sorted;
}

const Discipline* find_discipline(const std::string& name) {
    const auto found = std::find_if(disciplines().begin(), disciplines().end(),
                                    [&](const Discipline& discipline) { return discipline.name == name; });
    return found == disciplines().end() ? nullptr : &*found;
}

std::optional<Problem> queue_problem(const Link& link) {
    const std::string& name = link.queue_discipline;
    const Discipline* const discipline = find_discipline(name);
    if (discipline == nullptr) {
        return Problem{"discipline", "unknown queue discipline \"" + name + "\"",
                       "give " + names_where([](const Discipline&) { return true; })};
    }
    if (link.ecn_marking && !discipline->can_mark) {
        return Problem{
            "ecn_marking", name + " cannot mark",
            "choose the discipline " + names_where([](const Discipline& one) { return one.can_mark; })};
    }
    if (link.queue_unit == QueueUnit::bytes && !discipline->counts_bytes) {
        return Problem{"unit", name + " takes its limit in packets only", "give packets"};
    }
    if (link.ce_threshold > 0 && !discipline->has_ce_threshold) {
        return Problem{"ce_threshold_ms", name + " has no CE threshold",
                       "choose the discipline " +
                           names_where([](const Discipline& one) { return one.has_ce_threshold; })};
    }
    if (link.ce_threshold > 0 && !link.ecn_marking) {
        return Problem{"ce_threshold_ms", "is for a queue that marks", "set ecn_marking: true"};
    }
    return std::nullopt;
}

void check_queue(const Link& link, const std::string& where) {
    refuse(queue_problem(link), where + ".queue.");
}

}  // namespace quicgym
