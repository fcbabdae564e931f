// First in, first out: ns-3's FifoQueueDisc. What does not fit is dropped.
#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

namespace {

class Fifo final : public QueueDiscipline {
public:
    explicit Fifo(const DisciplineSettings& settings) : QueueDiscipline(settings.link) {}
    std::unique_ptr<QueueDiscipline> clone() const override { return std::make_unique<Fifo>(*this); }

    void enqueue(QueuedPacket packet) override;
    bool dequeue(Time now, QueuedPacket& packet) override;

private:
    PacketFifo queue_;
};

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

const RegisteredDiscipline registered({.name = "fifo",
                                       .ns3_type = "ns3::FifoQueueDisc",
                                       .make = make_discipline_of<Fifo>});

}  // namespace

}  // namespace quicgym::net
