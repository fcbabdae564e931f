#include "sim/ns3/scheduler.hpp"

#include <algorithm>

namespace quicgym::ns3_host {

NS_OBJECT_ENSURE_REGISTERED(NodeOrderScheduler);

ns3::TypeId NodeOrderScheduler::GetTypeId() {
    static const ns3::TypeId id = ns3::TypeId("quicgym::NodeOrderScheduler")
                                      .SetParent<ns3::Scheduler>()
                                      .SetGroupName("Core")
                                      .AddConstructor<NodeOrderScheduler>();
    return id;
}

NodeOrderScheduler::~NodeOrderScheduler() = default;

void NodeOrderScheduler::Insert(const Event& event) {
    heap_.push_back({event.key.m_ts, std::uint64_t{event.key.m_context} << 32 | event.key.m_uid, event.impl});
    std::push_heap(heap_.begin(), heap_.end(), Later{});
}

ns3::Scheduler::Event NodeOrderScheduler::to_event(const Entry& entry) {
    Event event;
    event.impl = entry.event;
    event.key.m_ts = entry.time_nanoseconds;
    event.key.m_uid = static_cast<std::uint32_t>(entry.order);
    event.key.m_context = static_cast<std::uint32_t>(entry.order >> 32);
    return event;
}

ns3::Scheduler::Event NodeOrderScheduler::PeekNext() const {
    return to_event(heap_.front());
}

ns3::Scheduler::Event NodeOrderScheduler::RemoveNext() {
    std::pop_heap(heap_.begin(), heap_.end(), Later{});
    const Event event = to_event(heap_.back());
    heap_.pop_back();
    return event;
}

void NodeOrderScheduler::Remove(const Event& event) {
    const auto found = std::find_if(heap_.begin(), heap_.end(), [&](const Entry& entry) {
        return static_cast<std::uint32_t>(entry.order) == event.key.m_uid;
    });
    if (found == heap_.end()) return;
    *found = heap_.back();
    heap_.pop_back();
    std::make_heap(heap_.begin(), heap_.end(), Later{});
}

}  // namespace quicgym::ns3_host
