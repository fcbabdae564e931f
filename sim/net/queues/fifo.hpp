// First in, first out: ns-3's FifoQueueDisc. What does not fit is dropped.
#pragma once

#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

class Fifo final : public QueueDiscipline {
public:
    explicit Fifo(const DisciplineSettings& settings) : QueueDiscipline(settings.link) {}
    std::unique_ptr<QueueDiscipline> clone() const override { return std::make_unique<Fifo>(*this); }

    void enqueue(QueuedPacket packet) override;
    bool dequeue(Time now, QueuedPacket& packet) override;

private:
    PacketFifo queue_;
};

}  // namespace quicgym::net
