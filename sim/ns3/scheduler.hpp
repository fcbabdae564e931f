// The order of simultaneous events, which both hosts share.
#pragma once

#include <ns3/scheduler.h>

#include <cstdint>
#include <vector>

namespace quicgym::ns3_host {

// Contexts of events that must come after those of every node at the same instant.
inline constexpr std::uint32_t kSampleContext = 0xffff'fffe;
inline constexpr std::uint32_t kStopContext = 0xffff'ffff;

// Orders events by (time, node, insertion). ns-3's own schedulers order by (time, insertion), so
// that two nodes' events at one instant take turns by history; here they do by node alone, which
// is a rule that the native engine can follow without keeping ns-3's global sequence.
class NodeOrderScheduler : public ns3::Scheduler {
public:
    static ns3::TypeId GetTypeId();
    ~NodeOrderScheduler() override;

    void Insert(const Event& event) override;
    bool IsEmpty() const override { return heap_.empty(); }
    Event PeekNext() const override;
    Event RemoveNext() override;
    void Remove(const Event& event) override;

private:
    struct Entry {
        std::uint64_t time_nanoseconds;
        std::uint64_t order;  // context in the upper half, uid in the lower
        ns3::EventImpl* event;
    };

    struct Later {  // the earliest event is the heap's largest
        bool operator()(const Entry& a, const Entry& b) const {
            return a.time_nanoseconds != b.time_nanoseconds ? a.time_nanoseconds > b.time_nanoseconds
                                                            : a.order > b.order;
        }
    };
    static Event to_event(const Entry& entry);

    std::vector<Entry> heap_;
};

}  // namespace quicgym::ns3_host
