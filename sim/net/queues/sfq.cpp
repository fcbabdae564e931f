// Stochastic fairness queueing (SFQ), McKenney 1990: a queue for each flow, served in turns; a packet beyond
// the limit makes room in the longest queue.
//
// As Linux's sch_sfq has it: 1024 queues, turns of one full packet by deficit round robin, a queue that gets
// its first packet comes last in the round, and the longest queue loses its last packet. ns-3 has no such
// disc.
#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/ring.hpp"
#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

namespace {

class Sfq final : public QueueDiscipline {
public:
    explicit Sfq(const DisciplineSettings& settings) : QueueDiscipline(settings.link) {
        index_of_bucket_.fill(kNone);
    }
    std::unique_ptr<QueueDiscipline> clone() const override { return std::make_unique<Sfq>(*this); }

    void enqueue(QueuedPacket packet) override;
    bool dequeue(Time now, QueuedPacket& packet) override;

private:
    static constexpr std::uint32_t kNone = 0xffff'ffff;
    static constexpr std::size_t kQueues = 1024;
    static constexpr std::int64_t kQuantumBytes = 1500;  // the MTU: one packet per turn

    struct FlowQueue {
        PacketFifo packets{};
        std::int64_t deficit_bytes = 0;
    };

    std::uint32_t queue_of(const QueuedPacket& packet);
    bool make_room_for(std::uint32_t arriving);
    void put_last(std::uint32_t index) {
        round_.make_room(first_, last_);
        round_[last_++] = index;
    }

    std::array<std::uint32_t, kQueues> index_of_bucket_;
    std::vector<FlowQueue> queues_;  // in the order in which buckets got their first packet
    Ring<std::uint32_t> round_;      // those with packets, the next at first_
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
};

std::uint32_t Sfq::queue_of(const QueuedPacket& packet) {
    std::uint32_t& known = index_of_bucket_[packet.flow % kQueues];
    if (known == kNone) {
        known = static_cast<std::uint32_t>(queues_.size());
        queues_.emplace_back();
    }
    return known;
}

// Drops the last packet of the longest queue, in packets. False: the queue of the arriving packet would be as
// long, and that packet is its last.
bool Sfq::make_room_for(std::uint32_t arriving) {
    FlowQueue* longest = nullptr;
    std::uint64_t most = queues_[arriving].packets.packets() + 1;
    for (FlowQueue& queue : queues_) {
        if (queue.packets.packets() <= most) continue;
        longest = &queue;
        most = queue.packets.packets();
    }
    if (longest == nullptr) return false;
    const QueuedPacket last = longest->packets.pop_back();  // at least two are left
    count_out(last);
    drop(last);
    return true;
}

void Sfq::enqueue(QueuedPacket packet) {
    const std::uint32_t index = queue_of(packet);
    if (packets() >= limit() && !make_room_for(index)) return drop(packet);
    FlowQueue& queue = queues_[index];
    if (queue.packets.empty()) {
        queue.deficit_bytes = kQuantumBytes;
        put_last(index);
    }
    count_in(packet);
    queue.packets.push(packet);
}

bool Sfq::dequeue(Time, QueuedPacket& packet) {
    if (first_ == last_) return false;
    while (queues_[round_[first_]].deficit_bytes <= 0) {
        const std::uint32_t index = round_[first_++];
        queues_[index].deficit_bytes += kQuantumBytes;
        put_last(index);
    }
    FlowQueue& queue = queues_[round_[first_]];
    packet = queue.packets.pop();
    count_out(packet);
    queue.deficit_bytes -= packet.bytes;
    if (queue.packets.empty()) ++first_;
    return true;
}

const RegisteredDiscipline registered({.name = "sfq",
                                       .counts_bytes = false,
                                       .make = make_discipline_of<Sfq>});

}  // namespace

}  // namespace quicgym::net
