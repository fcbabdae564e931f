// FQ-CoDel, RFC 8290: a queue with a CoDel of its own for each flow, served by deficit round robin; flows
// that became active are served before the others.
//
// Equal to ns-3's FqCoDelQueueDisc with a packet filter that tells flows apart by number. A packet beyond the
// limit makes room in the fattest queue, by drops at its head (section 4.1). As ns-3 has it, a queue that
// alone holds the whole limit drops what arrives instead.
#include <array>
#include <cstdint>
#include <vector>

#include "sim/net/queues/codel.hpp"
#include "sim/net/queues/discipline.hpp"
#include "sim/net/queues/packet_fifo.hpp"

namespace quicgym::net {

namespace {

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

    // A list of queues, by their indices.
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

constexpr std::int64_t kQuantumBytes = 1500;  // the MTU; RFC 8290, section 5.2.4: one packet per round
constexpr int kMostDrops = 64;                // at one overload; RFC 8290, section 4.1

void FqCoDel::List::push_back(std::vector<FlowQueue>& queues, std::uint32_t index) {
    queues[index].next = kNone;
    if (first_ == kNone) {
        first_ = index;
    } else {
        queues[last_].next = index;
    }
    last_ = index;
}

void FqCoDel::List::pop_front(std::vector<FlowQueue>& queues) {
    first_ = queues[first_].next;
}

FqCoDel::FqCoDel(const DisciplineSettings& settings) : QueueDiscipline(settings.link), fresh_(settings.link) {
    index_of_bucket_.fill(kNone);
}

FqCoDel::FlowQueue& FqCoDel::queue_of(const QueuedPacket& packet, std::uint32_t& index) {
    std::uint32_t& known = index_of_bucket_[packet.flow % kQueues];
    if (known == kNone) {
        known = static_cast<std::uint32_t>(queues_.size());
        queues_.emplace_back(fresh_);
    }
    index = known;
    return queues_[known];
}

void FqCoDel::enqueue(QueuedPacket packet) {
    std::uint32_t index = kNone;
    FlowQueue& queue = queue_of(packet, index);
    if (queue.packets.packets() >= limit()) return drop(packet);
    if (queue.activity == Activity::inactive) {
        queue.activity = Activity::fresh;
        queue.deficit_bytes = kQuantumBytes;
        new_.push_back(queues_, index);
    }
    count_in(packet);
    queue.packets.push(packet);
    if (packets() > limit()) relieve_fattest();
}

// RFC 8290, section 4.1: half of the backlog goes at once, so that the search is rare under a flood.
void FqCoDel::relieve_fattest() {
    FlowQueue* fattest = &queues_.front();
    for (FlowQueue& queue : queues_) {
        if (queue.packets.bytes() > fattest->packets.bytes()) fattest = &queue;
    }
    const std::uint64_t enough = fattest->packets.bytes() / 2;
    std::uint64_t dropped_bytes = 0;
    for (int drops = 0; drops < kMostDrops; ++drops) {
        const QueuedPacket packet = fattest->packets.pop();
        count_out(packet);
        drop(packet);
        dropped_bytes += packet.bytes;
        if (dropped_bytes >= enough) break;
    }
}

bool FqCoDel::dequeue(Time now, QueuedPacket& packet) {
    for (;;) {
        const bool is_new = !new_.empty();
        List& list = is_new ? new_ : old_;
        if (list.empty()) return false;
        const std::uint32_t index = list.first();
        FlowQueue& queue = queues_[index];
        if (queue.deficit_bytes <= 0) {
            queue.deficit_bytes += kQuantumBytes;
            queue.activity = Activity::old;
            list.pop_front(queues_);
            old_.push_back(queues_, index);
            continue;
        }
        const bool found = queue.control.dequeue(
            queue.packets, now, packet, [this](QueuedPacket& marked) { return mark(marked); },
            [this](const QueuedPacket& dropped) {
                count_out(dropped);
                drop(dropped);
            });
        if (found) {
            queue.deficit_bytes -= packet.bytes;
            count_out(packet);
            return true;
        }
        // RFC 8290, section 4.2: an empty new queue waits for a turn as an old one before it is forgotten.
        list.pop_front(queues_);
        if (is_new) {
            queue.activity = Activity::old;
            old_.push_back(queues_, index);
        } else {
            queue.activity = Activity::inactive;
        }
    }
}

const RegisteredDiscipline registered({.name = "fq-codel",
                                       .can_mark = true,
                                       .counts_bytes = false,
                                       .has_ce_threshold = true,
                                       .ns3_type = "ns3::FqCoDelQueueDisc",
                                       .make = make_discipline_of<FqCoDel>});

}  // namespace

}  // namespace quicgym::net
