#include "sim/net/queues/fifo.hpp"

namespace quicgym::net {

void Fifo::enqueue(QueuedPacket packet) {
    if (!has_room_for(packet)) return drop(packet);
    count_in(packet);
    queue_.push(packet);
}

bool Fifo::dequeue(Time, QueuedPacket& packet) {
    if (queue_.empty()) return false;
    packet = queue_.pop();
    count_out(packet);
    return true;
}

namespace {
const RegisteredDiscipline registered({.name = "fifo",
                                       .ns3_type = "ns3::FifoQueueDisc",
                                       .make = make_discipline_of<Fifo>});
}

}  // namespace quicgym::net
