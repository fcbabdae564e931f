// RED: Floyd and Jacobson, Random early detection gateways for congestion avoidance, IEEE/ACM Transactions on
// Networking 1(4), 1993; "gentle" and thresholds from the link's rate as in Floyd, Gummadi and Shenker,
// Adaptive RED, 2001.
//
// Equal to ns-3's RedQueueDisc as the ns-3 host sets it: thresholds for a target delay of 5 ms, an average
// weight of 0.002, a largest probability of 1/50 at the upper threshold, and at least one packet between two
// drops.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/ns3_numbers.hpp"
#include "sim/net/queues/packet_fifo.hpp"
#include "sim/net/transmitter.hpp"

namespace quicgym::net {

namespace {

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

constexpr double kWeight = 0.002;
constexpr double kLargestProbability = 1.0 / 50;
constexpr Time kTargetDelay = 5 * kMillisecond;
constexpr double kLowestThresholdPackets = 5.0;

Red::Red(const DisciplineSettings& settings)
    : QueueDiscipline(settings.link),
      random_(settings.seed, settings.stream),
      mean_packet_bytes_(settings.largest_packet_bytes),
      packets_per_second_(static_cast<double>(nominal_rate_bits_per_second(settings.link)) /
                          (8.0 * static_cast<double>(mean_packet_bytes_))),
      lower_(std::max(kLowestThresholdPackets, ns3_seconds(kTargetDelay) * packets_per_second_ / 2.0)) {
    if (!limit_in_packets()) lower_ *= static_cast<double>(mean_packet_bytes_);
    upper_ = 3 * lower_;
}

void Red::enqueue(QueuedPacket packet) {
    update_average(packet.arrival);
    ++packets_since_;
    bytes_since_ += packet.bytes;
    const Decision decision = decide(packet);
    if (decision == Decision::drop || (decision == Decision::mark && !mark(packet)) || !has_room_for(packet))
        return drop(packet);
    count_in(packet);
    queue_.push(packet);
}

bool Red::dequeue(Time now, QueuedPacket& packet) {
    idle_ = queue_.empty();
    if (idle_) {
        idle_since_ = now;
        return false;
    }
    packet = queue_.pop();
    count_out(packet);
    return true;
}

// An idle link counts as if packets of the mean size had found it empty.
void Red::update_average(Time now) {
    std::uint32_t missed = 0;
    if (idle_) missed = static_cast<std::uint32_t>(packets_per_second_ * ns3_seconds(now - idle_since_));
    idle_ = false;
    const auto queued = static_cast<double>(limit_in_packets() ? packets() : bytes());
    average_ = average_ * std::pow(1.0 - kWeight, missed + 1) + kWeight * queued;
}

Red::Decision Red::decide(const QueuedPacket& packet) {
    if (average_ < lower_ || (limit_in_packets() ? packets() : bytes()) <= 1) {
        above_lower_ = false;
        return Decision::keep;
    }
    if (average_ >= 2 * upper_) return Decision::drop;
    if (!above_lower_) {
        above_lower_ = true;
        packets_since_ = 1;
        bytes_since_ = packet.bytes;
        return Decision::keep;
    }
    if (random_.uniform() > probability(packet)) return Decision::keep;
    packets_since_ = 0;
    bytes_since_ = 0;
    return Decision::mark;
}

double Red::probability(const QueuedPacket& packet) const {
    double p = 0.0;
    if (average_ >=
        upper_) {  // gentle: from the largest probability at the upper threshold to 1 at twice of it
        p = (1.0 - kLargestProbability) / upper_ * average_ + (2.0 * kLargestProbability - 1.0);
    } else {
        const double range = upper_ - lower_;
        p = (1.0 / range * average_ + -lower_ / range) * kLargestProbability;
    }
    p = std::min(p, 1.0);

    // Drops are spread evenly, and at least one packet passes between two.
    const double since = limit_in_packets() ? static_cast<double>(packets_since_)
                                            : static_cast<double>(bytes_since_ / mean_packet_bytes_);
    if (since * p < 1.0) {
        p = 0.0;
    } else if (since * p < 2.0) {
        p /= 2.0 - since * p;
    } else {
        p = 1.0;
    }
    if (!limit_in_packets() && p < 1.0)
        p = p * static_cast<double>(packet.bytes) / static_cast<double>(mean_packet_bytes_);
    return std::min(p, 1.0);
}

const RegisteredDiscipline registered(
    {.name = "red", .can_mark = true, .ns3_type = "ns3::RedQueueDisc", .make = make_discipline_of<Red>});

}  // namespace

}  // namespace quicgym::net
