// PIE, RFC 8033: drops at random on arrival, with a probability that a controller updates from the queueing
// delay and its trend.
//
// Equal to ns-3's PieQueueDisc with its default attributes. Of what the RFC leaves open: the delay is the
// sojourn time of the packet that left last (section 4.3), marks end at a probability of 10% (5.1), PIE is
// never switched off (5.3), drops are not derandomised (5.4). Its departures: a burst is let pass again only
// after 1.5 s without congestion, and the probability of a byte-limited queue is scaled by the size over 1000
// bytes.
#include <algorithm>
#include <cstdint>

#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/ns3_numbers.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

namespace {

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

// RFC 8033, sections 4 and 5.1.
constexpr Time kTargetDelay = 15 * kMillisecond;
constexpr Time kUpdatePeriod = 15 * kMillisecond;
constexpr Time kLargestBurst = 150 * kMillisecond;
constexpr std::uint32_t kQuietUpdatesAfterBurst = 100;  // 1.5 s
constexpr double kAlpha = 0.125;                        // per second of delay
constexpr double kBeta = 1.25;
constexpr double kMarkingEnds = 0.1;  // above this probability ECN-capable packets are dropped too
constexpr std::uint64_t kMeanPacketBytes = 1000;

// RFC 8033, section 4.2: steps are the smaller, the smaller the probability is.
double damped(double step, double probability) {
    if (probability < 0.000001) return step / 2048;
    if (probability < 0.00001) return step / 512;
    if (probability < 0.0001) return step / 128;
    if (probability < 0.001) return step / 32;
    if (probability < 0.01) return step / 8;
    if (probability < 0.1) return step / 2;
    return step;
}

void Pie::enqueue(QueuedPacket packet) {
    update_before(packet.arrival);
    if (!has_room_for(packet)) return drop(packet);
    if (drops_early(packet) && (probability_ >= kMarkingEnds || !mark(packet))) return drop(packet);
    count_in(packet);
    queue_.push(packet);
}

bool Pie::dequeue(Time now, QueuedPacket& packet) {
    if (queue_.empty()) return false;
    update_before(now);
    packet = queue_.pop();
    count_out(packet);
    delay_ = queue_.empty() ? 0 : now - packet.arrival;
    return true;
}

bool Pie::drops_early(const QueuedPacket& packet) {
    if (burst_allowance_ > 0) return false;
    if (burst_ == Burst::none) {
        burst_ = Burst::protecting;
        burst_allowance_ = kLargestBurst;
    }
    // RFC 8033, section 4.1: a short queue is left alone, so that the link is never idle for PIE's sake.
    if (delay_before_ < kTargetDelay / 2 && probability_ < 0.2) return false;
    if (limit_in_packets() ? packets() <= 2 : bytes() <= 2 * kMeanPacketBytes) return false;
    double probability = probability_;
    if (!limit_in_packets()) {
        probability = probability * static_cast<double>(packet.bytes) / static_cast<double>(kMeanPacketBytes);
    }
    return random_.uniform() <= probability;
}

// An update comes after everything else that happens at its instant.
void Pie::update_before(Time now) {
    for (; next_update_ < now; next_update_ += kUpdatePeriod) update_probability();
}

void Pie::update_probability() {
    double step = 0.0;
    if (burst_allowance_ > 0) {
        probability_ = 0.0;
    } else {
        const double delay = ns3_seconds(delay_);
        step = damped(
            kAlpha * (delay - ns3_seconds(kTargetDelay)) + kBeta * (delay - ns3_seconds(delay_before_)),
            probability_);
        if (probability_ >= 0.1) step = std::min(step, 0.02);  // section 5.5
    }
    double probability = step + probability_;
    if (delay_ == 0 && delay_before_ == 0) probability *= 0.98;
    probability_ = std::clamp(probability, 0.0, 1.0);
    burst_allowance_ = std::max(burst_allowance_ - kUpdatePeriod, Time{0});

    const bool quiet = delay_ < kTargetDelay / 2 && delay_before_ < kTargetDelay / 2 && probability_ == 0.0 &&
                       burst_allowance_ == 0;
    if (!quiet) {
        quiet_updates_ = 0;
    } else if (burst_ == Burst::protecting) {
        burst_ = Burst::over;
        quiet_updates_ = 0;
    } else if (burst_ == Burst::over && ++quiet_updates_ > kQuietUpdatesAfterBurst) {
        burst_ = Burst::none;
        quiet_updates_ = 0;
    }
    delay_before_ = delay_;
}

const RegisteredDiscipline registered(
    {.name = "pie", .can_mark = true, .ns3_type = "ns3::PieQueueDisc", .make = make_discipline_of<Pie>});

}  // namespace

}  // namespace quicgym::net
