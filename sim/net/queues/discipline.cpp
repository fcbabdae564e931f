#include "sim/net/queues/discipline.hpp"

#include <stdexcept>

namespace quicgym::net {

std::unique_ptr<QueueDiscipline> make_discipline(const DisciplineSettings& settings) {
    const Discipline* const discipline = find_discipline(settings.link.queue_discipline);
    if (discipline == nullptr || discipline->make == nullptr) {
        throw std::invalid_argument("no queue discipline decides over \"" + settings.link.queue_discipline +
                                    "\"");
    }
    return discipline->make(settings);
}

}  // namespace quicgym::net
