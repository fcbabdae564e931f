// RED: Floyd and Jacobson, Random early detection gateways for congestion avoidance, IEEE/ACM Transactions on
// Networking 1(4), 1993; "gentle" and thresholds from the link's rate as in Floyd, Gummadi and Shenker,
// Adaptive RED, 2001.
//
// Equal to ns-3's RedQueueDisc as the ns-3 host sets it: thresholds for a target delay of 5 ms, an average
// weight of 0.002, a largest probability of 1/50 at the upper threshold, and at least one packet between two
// drops.
#pragma once

#include <cstdint>

#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/ns3_numbers.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

class Red final : public QueueDiscipline {
public:
    explicit Red(const DisciplineSettings& settings);
    std::unique_ptr<QueueDiscipline> clone() const override { return std::make_unique<Red>(*this); }

    void enqueue(QueuedPacket packet) override;
    bool dequeue(Time now, QueuedPacket& packet) override;

private:
    enum class Decision : std::uint8_t { keep, mark, drop };

    void update_average(Time now);
    Decision decide(const QueuedPacket& packet);
    double probability(const QueuedPacket& packet) const;

    PacketFifo queue_;
    Ns3Random random_;
    std::uint64_t mean_packet_bytes_;
    double packets_per_second_;  // of the mean size, at the link's rate
    double lower_;               // thresholds, in the limit's unit
    double upper_;

    double average_ = 0.0;
    bool idle_ = true;
    Time idle_since_ = 0;
    bool above_lower_ = false;
    // Since the last drop or mark at random.
    std::uint32_t packets_since_ = 0;
    std::uint32_t bytes_since_ = 0;
};

}  // namespace quicgym::net
