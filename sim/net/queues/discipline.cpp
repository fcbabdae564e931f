#include "sim/net/queues/discipline.hpp"

#include <algorithm>
#include <stdexcept>

namespace quicgym::net {

namespace {

std::vector<DisciplineEntry>& entries() {
    static std::vector<DisciplineEntry> all;
    return all;
}

template <class Condition>
std::string names_where(Condition condition) {
    std::vector<std::string> names;
    for (const DisciplineEntry& entry : entries()) {
        if (condition(entry)) names.push_back(entry.name);
    }
    std::sort(names.begin(), names.end());
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
        text += names[i];
    }
    return text;
}

}  // namespace

RegisteredDiscipline::RegisteredDiscipline(const DisciplineEntry& entry) {
    entries().push_back(entry);
}

std::unique_ptr<QueueDiscipline> make_discipline(const DisciplineSettings& settings,
                                                 const std::string& where) {
    const Link& link = settings.link;
    const auto found = std::find_if(entries().begin(), entries().end(), [&](const DisciplineEntry& entry) {
        return entry.name == link.queue_discipline;
    });
    if (found == entries().end()) {
        throw std::invalid_argument(where + ": unknown queue discipline \"" + link.queue_discipline +
                                    "\"; there are drop-tail, " +
                                    names_where([](const DisciplineEntry&) { return true; }));
    }
    if (link.ecn_marking && !found->marks) {
        throw std::invalid_argument(
            where + ": the queue discipline " + link.queue_discipline + " cannot mark; " +
            names_where([](const DisciplineEntry& entry) { return entry.marks; }) + " can");
    }
    if (link.queue_unit == QueueUnit::bytes && !found->counts_bytes) {
        throw std::invalid_argument(where + ": " + link.queue_discipline +
                                    " takes its limit in packets only");
    }
    if (link.ce_threshold > 0 && !found->has_ce_threshold) {
        throw std::invalid_argument(
            where + ": " + link.queue_discipline + " has no CE threshold; " +
            names_where([](const DisciplineEntry& entry) { return entry.has_ce_threshold; }) + " have");
    }
    return found->make(settings);
}

}  // namespace quicgym::net
