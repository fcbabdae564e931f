#include "sim/net/queues/codel.hpp"

namespace quicgym::net {

void CoDel::enqueue(QueuedPacket packet) {
    if (!has_room_for(packet)) return drop(packet);
    count_in(packet);
    queue_.push(packet);
}

bool CoDel::dequeue(Time now, QueuedPacket& packet) {
    const bool found = control_.dequeue(
        queue_, now, packet, [this](QueuedPacket& marked) { return mark(marked); },
        [this](const QueuedPacket& dropped) {
            count_out(dropped);
            drop(dropped);
        });
    if (found) count_out(packet);
    return found;
}

namespace {
const RegisteredDiscipline registered({.name = "codel",
                                       .can_mark = true,
                                       .has_ce_threshold = true,
                                       .ns3_type = "ns3::CoDelQueueDisc",
                                       .make = make_discipline_of<CoDel>});
}

}  // namespace quicgym::net
