// FQ-CoDel, RFC 8290: a queue with a CoDel of its own for each flow, served by deficit round robin; flows
// that became active are served before the others.
//
// Equal to ns-3's FqCoDelQueueDisc with a packet filter that tells flows apart by number. A packet beyond the
// limit makes room in the fattest queue, by drops at its head (section 4.1). As ns-3 has it, a queue that
// alone holds the whole limit drops what arrives instead.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/net/queues/codel.hpp"
#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

class FqCoDel final : public QueueDiscipline {
public:
    explicit FqCoDel(const DisciplineSettings& settings);
    std::unique_ptr<QueueDiscipline> clone() const override { return std::make_unique<FqCoDel>(*this); }

    void enqueue(QueuedPacket packet) override;
    bool dequeue(Time now, QueuedPacket& packet) override;

private:
    static constexpr std::uint32_t kNone = 0xffff'ffff;
    static constexpr std::size_t kQueues = 1024;  // RFC 8290, section 5.2.5

    enum class Activity : std::uint8_t { inactive, fresh, old };

    struct FlowQueue {
        explicit FlowQueue(const CoDelControl& fresh) : control(fresh) {}

        PacketFifo packets{};
        CoDelControl control;
        std::int64_t deficit_bytes = 0;
        Activity activity = Activity::inactive;
        std::uint32_t next = kNone;  // in its list
    };

    // Of the indices of queues.
    class List {
    public:
        bool empty() const { return first_ == kNone; }
        std::uint32_t first() const { return first_; }
        void push_back(std::vector<FlowQueue>& queues, std::uint32_t index);
        void pop_front(std::vector<FlowQueue>& queues);

    private:
        std::uint32_t first_ = kNone;
        std::uint32_t last_ = kNone;
    };

    FlowQueue& queue_of(const QueuedPacket& packet, std::uint32_t& index);
    void relieve_fattest();

    const CoDelControl fresh_;  // as every queue begins
    std::array<std::uint32_t, kQueues> index_of_bucket_;
    std::vector<FlowQueue> queues_;  // in the order in which buckets got their first packet
    List new_;
    List old_;
};

}  // namespace quicgym::net
