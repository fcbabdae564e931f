// DualPI2, RFC 9332, appendix A: a queue for L4S packets beside one for the others. The marks of the first
// and the drops and marks of the second come from one controller, coupled so that flows of both kinds share
// the link.
#include <algorithm>
#include <cstdint>

#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

namespace {

class DualPi2 final : public QueueDiscipline {
public:
    explicit DualPi2(const DisciplineSettings& settings) : QueueDiscipline(settings.link) {}
    std::unique_ptr<QueueDiscipline> clone() const override { return std::make_unique<DualPi2>(*this); }

    void enqueue(QueuedPacket packet) override;
    bool dequeue(Time now, QueuedPacket& packet) override;

private:
    // Deterministic: fires once for every 1 that likelihoods add up to.
    class Recurrence {
    public:
        bool fires(double likelihood) {
            sum_ += likelihood;
            if (sum_ <= 1.0) return false;
            sum_ -= 1.0;
            return true;
        }

    private:
        double sum_ = 0.0;
    };

    enum class Verdict : std::uint8_t { pass, mark, drop };

    bool l4s_is_next();
    Verdict judge_l4s(Time sojourn);
    Verdict judge_classic(const QueuedPacket& packet);
    void update_before(Time now);
    void update_probability(Time now);

    PacketFifo l4s_;
    PacketFifo classic_;
    Recurrence l4s_recurrence_;
    Recurrence classic_recurrence_;
    std::uint64_t l4s_lead_bytes_ = 0;  // that the L4S queue sent while the other one waited
    double base_probability_ = 0.0;     // p'
    Time delay_before_ = 0;             // at the update before
    Time next_update_ = 0;
};

// RFC 9332, appendix A.1, dualpi2_params_init.
constexpr double kCoupling = 2.0;  // k
constexpr Time kTargetDelay = 15 * kMillisecond;
constexpr Time kLongestRtt = 100 * kMillisecond;
constexpr double kLargestClassicMarking = std::min(1.0 / (kCoupling * kCoupling), 1.0);  // p_Cmax
constexpr Time kUpdatePeriod = std::min(kTargetDelay, kLongestRtt / 3);
constexpr double kAlpha =
    0.1 * to_seconds(kUpdatePeriod) / (to_seconds(kLongestRtt) * to_seconds(kLongestRtt));
constexpr double kBeta = 0.3 / to_seconds(kLongestRtt);
constexpr Time kRampBegins = 800 * kMicrosecond;  // minTh
constexpr Time kRampRange = 400 * kMicrosecond;   // range
constexpr std::uint64_t kUnmarkedPackets = 1;     // Th_len
constexpr double kLargestL4sMarking = 1.0;        // p_Lmax

// The L4S queue sends so many bytes for each byte of the other queue while both have packets. The RFC leaves
// the scheduler open.
constexpr std::uint64_t kL4sWeight = 15;

Time waited(const PacketFifo& queue, Time now) {
    return queue.empty() ? 0 : now - queue.front().arrival;
}

void DualPi2::enqueue(QueuedPacket packet) {
    update_before(packet.arrival);
    if (!has_room_for(packet)) return drop(packet);
    count_in(packet);
    (is_l4s(packet.ecn) ? l4s_ : classic_).push(packet);
}

// Appendix A.2, dualpi2_dequeue.
bool DualPi2::dequeue(Time now, QueuedPacket& packet) {
    update_before(now);
    while (packets() > 0) {
        const bool from_l4s = l4s_is_next();
        packet = (from_l4s ? l4s_ : classic_).pop();
        count_out(packet);
        const Verdict verdict = from_l4s ? judge_l4s(now - packet.arrival) : judge_classic(packet);
        if (verdict == Verdict::drop) {
            drop(packet);
            continue;
        }
        if (verdict == Verdict::mark) packet.ecn = quic::Ecn::ce;
        return true;
    }
    return false;
}

// Priority for the L4S queue, but for a small share, so that the classic one never starves.
bool DualPi2::l4s_is_next() {
    if (l4s_.empty()) return false;
    if (classic_.empty()) {
        l4s_lead_bytes_ = 0;
        return true;
    }
    const std::uint64_t allowed = kL4sWeight * classic_.front().bytes;
    if (l4s_lead_bytes_ >= allowed) {
        l4s_lead_bytes_ -= allowed;
        return false;
    }
    l4s_lead_bytes_ += l4s_.front().bytes;
    return true;
}

DualPi2::Verdict DualPi2::judge_l4s(Time sojourn) {
    const double coupled = std::min(kCoupling * base_probability_, kLargestL4sMarking);
    if (coupled >= kLargestL4sMarking) {  // overload: marks alone do not help
        if (l4s_recurrence_.fires(base_probability_ * base_probability_)) return Verdict::drop;
        return l4s_recurrence_.fires(coupled) ? Verdict::mark : Verdict::pass;
    }
    double native = 0.0;
    if (l4s_.packets() > kUnmarkedPackets) {
        native = std::clamp(to_seconds(sojourn - kRampBegins) / to_seconds(kRampRange), 0.0, 1.0);
    }
    return l4s_recurrence_.fires(std::max(native, coupled)) ? Verdict::mark : Verdict::pass;
}

DualPi2::Verdict DualPi2::judge_classic(const QueuedPacket& packet) {
    const double probability = base_probability_ * base_probability_;
    if (!classic_recurrence_.fires(probability)) return Verdict::pass;
    const bool drops = packet.ecn == quic::Ecn::not_ect || probability >= kLargestClassicMarking;
    return drops ? Verdict::drop : Verdict::mark;
}

// An update comes after everything else that happens at its instant.
void DualPi2::update_before(Time now) {
    for (; next_update_ < now; next_update_ += kUpdatePeriod) update_probability(next_update_);
}

// Appendix A.2, dualpi2_update.
void DualPi2::update_probability(Time now) {
    const Time delay = std::max(waited(classic_, now), waited(l4s_, now));
    base_probability_ = std::clamp(base_probability_ + kAlpha * to_seconds(delay - kTargetDelay) +
                                       kBeta * to_seconds(delay - delay_before_),
                                   0.0, 1.0);
    delay_before_ = delay;
}

const RegisteredDiscipline registered({.name = "dualpi2",
                                       .can_mark = true,
                                       .always_marks = true,
                                       .keeps_order = false,
                                       .make = make_discipline_of<DualPi2>});

}  // namespace

}  // namespace quicgym::net
