// PIE, RFC 8033: drops at random on arrival, with a probability that a controller updates from the queueing
// delay and its trend.
//
// Equal to ns-3's PieQueueDisc with its default attributes. Of what the RFC leaves open: the delay is the
// sojourn time of the packet that left last (section 4.3), marks end at a probability of 10% (5.1), PIE is
// never switched off (5.3), drops are not derandomised (5.4). Its departures: a burst is let pass again only
// after 1.5 s without congestion, and the probability of a byte-limited queue is scaled by the size over 1000
// bytes.
#pragma once

#include <cstdint>

#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/ns3_numbers.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

class Pie final : public QueueDiscipline {
public:
    explicit Pie(const DisciplineSettings& settings)
        : QueueDiscipline(settings.link), random_(settings.seed, settings.stream) {}
    std::unique_ptr<QueueDiscipline> clone() const override { return std::make_unique<Pie>(*this); }

    void enqueue(QueuedPacket packet) override;
    bool dequeue(Time now, QueuedPacket& packet) override;

private:
    enum class Burst : std::uint8_t { none, protecting, over };

    bool drops_early(const QueuedPacket& packet);
    void update_before(Time now);
    void update_probability();

    PacketFifo queue_;
    Ns3Random random_;
    double probability_ = 0.0;
    Time delay_ = 0;
    Time delay_before_ = 0;  // at the update before
    Time next_update_ = 0;
    Time burst_allowance_ = 0;
    Burst burst_ = Burst::none;
    std::uint32_t quiet_updates_ = 0;
};

}  // namespace quicgym::net
