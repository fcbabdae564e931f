// DualPI2, RFC 9332, appendix A: a queue for L4S packets beside one for the others. The marks of the first
// and the drops and marks of the second come from one controller, coupled so that flows of both kinds share
// the link.
#pragma once

#include <cstdint>

#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

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

}  // namespace quicgym::net
