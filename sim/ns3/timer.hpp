// A re-armable deadline on ns-3's event list.
#pragma once

#include <ns3/event-impl.h>
#include <ns3/ptr.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

// Calls back at the deadline or sooner. When the deadline moves to a later time, the pending event still
// fires and the owner checks whether anything is due, because this is cheaper than taking the event out
// of ns-3's list. All pending events are one reference-counted object, so arming allocates nothing.
class Timer {
public:
    Timer(std::uint32_t context, std::function<void()> callback)
        : event_(ns3::Create<Event>(*this)), context_(context), callback_(std::move(callback)) {}
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    // `deadline` must not lie in the past. kNever means that there is nothing to wait for.
    void arm(Time deadline) {
        if (deadline == kNever || (!pending_.empty() && pending_.back() <= deadline)) return;
        pending_.push_back(deadline);
        event_->Ref();  // the simulator drops one reference after it ran the event
        ns3::Simulator::ScheduleWithContext(context_, to_ns3(deadline - now()), ns3::PeekPointer(event_));
    }

private:
    class Event : public ns3::EventImpl {
    public:
        explicit Event(Timer& timer) : timer_(timer) {}

    private:
        void Notify() override { timer_.fire(); }
        Timer& timer_;
    };

    void fire() {
        pending_.pop_back();
        callback_();
    }

    ns3::Ptr<Event> event_;
    std::uint32_t context_;
    std::function<void()> callback_;
    std::vector<Time> pending_;  // descending: the next to fire is the last
};

}  // namespace quicgym::ns3_host
