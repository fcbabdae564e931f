#include "sim/ns3/bottleneck_monitor.hpp"

#include <ns3/ipv4-queue-disc-item.h>

#include <algorithm>

#include "sim/ns3/packet_view.hpp"
#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

void BottleneckMonitor::watch(ns3::Ptr<ns3::Queue<ns3::Packet>> device_queue, ns3::Ptr<ns3::QueueDisc> disc,
                              QueueUnit unit) {
    device_queue_ = device_queue;
    disc_ = disc;
    const char* const level = unit == QueueUnit::packets ? "PacketsInQueue" : "BytesInQueue";
    device_queue->TraceConnectWithoutContext(level,
                                             ns3::MakeCallback(&BottleneckMonitor::on_occupancy, this));
    device_queue->TraceConnectWithoutContext("Dequeue",
                                             ns3::MakeCallback(&BottleneckMonitor::on_device_dequeue, this));
    device_queue->TraceConnectWithoutContext("Drop",
                                             ns3::MakeCallback(&BottleneckMonitor::on_device_drop, this));
    if (disc) {
        disc->TraceConnectWithoutContext(level, ns3::MakeCallback(&BottleneckMonitor::on_occupancy, this));
        disc->TraceConnectWithoutContext("Dequeue",
                                         ns3::MakeCallback(&BottleneckMonitor::on_disc_dequeue, this));
        disc->TraceConnectWithoutContext("Drop", ns3::MakeCallback(&BottleneckMonitor::on_disc_drop, this));
        disc->TraceConnectWithoutContext(
            "DropAfterDequeue", ns3::MakeCallback(&BottleneckMonitor::on_disc_drop_after_dequeue, this));
    } else {
        device_queue->TraceConnectWithoutContext(
            "Enqueue", ns3::MakeCallback(&BottleneckMonitor::on_device_enqueue, this));
    }
}

// Traces the queue of the device or of the disc. ns-3 calls this before it stores the new value.
void BottleneckMonitor::on_occupancy(std::uint32_t before, std::uint32_t after) {
    occupancy_.set(now(), occupancy_.level() + after - before);
}

void BottleneckMonitor::on_device_enqueue(ns3::Ptr<const ns3::Packet> packet) {
    const auto view = view_of_framed_packet(*packet, kPppBytes, counters_.flow_count());
    waiting_.push_back({nullptr, now(), view ? view->flow : kNoFlow});
}

void BottleneckMonitor::on_device_dequeue(ns3::Ptr<const ns3::Packet>) {
    const Waiting packet = waiting_.front();
    waiting_.pop_front();
    if (packet.flow == kNoFlow) return;
    counters_.count_queue_delay(packet.flow, now() - packet.arrival);
}

void BottleneckMonitor::on_device_drop(ns3::Ptr<const ns3::Packet> packet) {
    const auto view = view_of_framed_packet(*packet, kPppBytes, counters_.flow_count());
    if (view && view->carries_data) counters_.count_drop(view->flow);
}

void BottleneckMonitor::on_packet_lost(ns3::Ptr<const ns3::Packet> packet) {
    on_device_drop(packet);
}

void BottleneckMonitor::on_packet_policed(const ns3::Ipv4Header& header,
                                          ns3::Ptr<const ns3::Packet> payload) {
    const auto view = view_of_payload(header, *payload, counters_.flow_count());
    if (view && view->carries_data) counters_.count_drop(view->flow);
}

void BottleneckMonitor::on_disc_dequeue(ns3::Ptr<const ns3::QueueDiscItem> item) {
    const auto view = view_of_item(*item, counters_.flow_count());
    waiting_.push_back(
        {ns3::PeekPointer(item), item->GetTimeStamp().GetTimeStep(), view ? view->flow : kNoFlow});
}

void BottleneckMonitor::on_disc_drop(ns3::Ptr<const ns3::QueueDiscItem> item) {
    const auto view = view_of_item(*item, counters_.flow_count());
    if (view && view->carries_data) counters_.count_drop(view->flow);
}

void BottleneckMonitor::on_disc_drop_after_dequeue(ns3::Ptr<const ns3::QueueDiscItem> item, const char*) {
    // CoDel and its kin take a packet out and then decide to drop it: it does not reach the device.
    const auto found = std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const Waiting& waiting) {
        return waiting.item == ns3::PeekPointer(item);
    });
    if (found != waiting_.rend()) waiting_.erase(std::next(found).base());
}

QueueSample BottleneckMonitor::sample(Time time) const {
    std::uint64_t packets = device_queue_->GetNPackets();
    std::uint64_t bytes = device_queue_->GetNBytes();
    if (disc_) {
        packets += disc_->GetNPackets();
        bytes += disc_->GetNBytes() + std::uint64_t{disc_->GetNPackets()} * (kLinkBytes - kUdpIpBytes);
    }
    return {time, packets, bytes};
}

void BottleneckMonitor::release() {
    device_queue_ = nullptr;
    disc_ = nullptr;
}

}  // namespace quicgym::ns3_host
