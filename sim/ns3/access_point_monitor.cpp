#include "sim/ns3/access_point_monitor.hpp"

#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

void AccessPointMonitor::watch(const ns3::Ptr<ns3::WifiMac>& mac,
                               const ns3::Ptr<ns3::Queue<ns3::Packet>>& wired_queue) {
    queue_ = mac->GetTxopQueue(ns3::AC_BE);
    mac->TraceConnectWithoutContext("MacTx", ns3::MakeCallback(&AccessPointMonitor::on_offered, this));
    queue_->TraceConnectWithoutContext("PacketsInQueue",
                                       ns3::MakeCallback(&AccessPointMonitor::on_occupancy, this));
    queue_->TraceConnectWithoutContext("Enqueue", ns3::MakeCallback(&AccessPointMonitor::on_enqueue, this));
    queue_->TraceConnectWithoutContext("Dequeue", ns3::MakeCallback(&AccessPointMonitor::on_dequeue, this));
    mac->TraceConnectWithoutContext("DroppedMpdu",
                                    ns3::MakeCallback(&AccessPointMonitor::on_frame_dropped, this));
    wired_queue->TraceConnectWithoutContext("Drop",
                                            ns3::MakeCallback(&AccessPointMonitor::on_wired_drop, this));
}

void AccessPointMonitor::on_occupancy(std::uint32_t, std::uint32_t after) {
    occupancy_.set(now(), after);
}

std::optional<PacketView> AccessPointMonitor::view(const ns3::Packet& packet) const {
    return view_of_framed_packet(packet, kLlcSnapBytes, counters_.flow_count());
}

void AccessPointMonitor::on_offered(ns3::Ptr<const ns3::Packet> packet) {
    const auto offered = view(*packet);
    if (offered && offered->carries_data) ++offered_[offered->flow];
}

void AccessPointMonitor::on_enqueue(ns3::Ptr<const ns3::WifiMpdu> frame) {
    const auto enqueued = view(*frame->GetPacket());
    if (!enqueued) return;
    if (enqueued->carries_data) ++enqueued_[enqueued->flow];
    waiting_.insert_or_assign(ns3::PeekPointer(frame), Waiting{now(), enqueued->flow});
}

void AccessPointMonitor::on_dequeue(ns3::Ptr<const ns3::WifiMpdu> frame) {
    const auto found = waiting_.find(ns3::PeekPointer(frame));
    if (found == waiting_.end()) return;
    counters_.count_queue_delay(found->second.flow, now() - found->second.arrival);
    waiting_.erase(found);
}

// It waited or was retransmitted for too long.
void AccessPointMonitor::on_frame_dropped(ns3::WifiMacDropReason, ns3::Ptr<const ns3::WifiMpdu> frame) {
    const auto dropped = view(*frame->GetPacket());
    if (dropped && dropped->carries_data) counters_.count_drop(dropped->flow);
}

void AccessPointMonitor::on_wired_drop(ns3::Ptr<const ns3::Packet> packet) {
    const auto dropped = view_of_framed_packet(*packet, kPppBytes, counters_.flow_count());
    if (dropped && dropped->carries_data) counters_.count_drop(dropped->flow);
}

void AccessPointMonitor::add_totals(std::size_t flow, FlowTotals& totals) const {
    counters_.of(flow).add_to(totals);
    totals.statistics.dropped_packets += offered_[flow] - enqueued_[flow];
}

QueueSample AccessPointMonitor::sample(Time time) const {
    return {time, queue_->GetNPackets(), queue_->GetNBytes()};
}

void AccessPointMonitor::release() {
    queue_ = nullptr;
}

}  // namespace quicgym::ns3_host
