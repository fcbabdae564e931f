#include "sim/ns3/queue_discipline.hpp"

#include <ns3/boolean.h>
#include <ns3/data-rate.h>
#include <ns3/double.h>
#include <ns3/node.h>
#include <ns3/nstime.h>
#include <ns3/object-factory.h>
#include <ns3/pie-queue-disc.h>
#include <ns3/red-queue-disc.h>
#include <ns3/traffic-control-layer.h>
#include <ns3/uinteger.h>

#include <limits>
#include <stdexcept>

#include "sim/net/transmitter.hpp"
#include "sim/ns3/flow_filter.hpp"
#include "sim/ns3/time.hpp"
#include "sim/queue_disciplines.hpp"

namespace quicgym::ns3_host {

void check_queue_discipline(const Link& link, const std::string& where) {
    if (link.queue_limit == 0 || link.queue_limit > std::numeric_limits<std::uint32_t>::max()) {
        throw std::invalid_argument(where + ": ns-3 needs a queue limit of 1 to 2^32 - 1, not " +
                                    std::to_string(link.queue_limit));
    }
    check_queue(link, where);
}

ns3::QueueSize queue_size(const Link& link) {
    return {link.queue_unit == QueueUnit::packets ? ns3::QueueSizeUnit::PACKETS : ns3::QueueSizeUnit::BYTES,
            static_cast<std::uint32_t>(link.queue_limit)};
}

ns3::Ptr<ns3::QueueDisc> install_queue_disc(const ns3::Ptr<ns3::PointToPointNetDevice>& device,
                                            const Link& link, const Scenario& scenario,
                                            std::uint64_t random_stream) {
    if (link.queue_discipline == kDropTail) return nullptr;
    const Discipline& discipline = *find_discipline(link.queue_discipline);
    ns3::ObjectFactory factory;
    factory.SetTypeId(discipline.ns3_type);
    factory.Set("MaxSize", ns3::QueueSizeValue(queue_size(link)));
    if (discipline.can_mark) factory.Set("UseEcn", ns3::BooleanValue(link.ecn_marking));
    if (link.ce_threshold > 0) {
        factory.Set("UseL4s", ns3::BooleanValue(true));
        factory.Set("CeThreshold", ns3::TimeValue(to_ns3(link.ce_threshold)));
    }
    if (link.queue_discipline == "red") {
        // Thresholds of zero: RED derives them from the rate and its target delay, in the limit's unit.
        factory.Set("MinTh", ns3::DoubleValue(0.0));
        factory.Set("MaxTh", ns3::DoubleValue(0.0));
        factory.Set("LinkBandwidth",
                    ns3::DataRateValue(ns3::DataRate(net::nominal_rate_bits_per_second(link))));
        factory.Set("LinkDelay", ns3::TimeValue(to_ns3(link.delay)));
        factory.Set("MeanPktSize", ns3::UintegerValue(largest_datagram_bytes(scenario) + kUdpIpBytes));
    }
    auto disc = factory.Create<ns3::QueueDisc>();
    // The native engine draws the same numbers and has the same queue for a flow.
    const auto stream = static_cast<std::int64_t>(random_stream);
    if (auto pie = ns3::DynamicCast<ns3::PieQueueDisc>(disc)) pie->AssignStreams(stream);
    if (auto red = ns3::DynamicCast<ns3::RedQueueDisc>(disc)) red->AssignStreams(stream);
    if (link.queue_discipline == "fq-codel") disc->AddPacketFilter(ns3::CreateObject<FlowFilter>());
    device->GetNode()->GetObject<ns3::TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, disc);
    return disc;
}

}  // namespace quicgym::ns3_host
