#include "sim/ns3/quic_flow.hpp"

#include <ns3/boolean.h>
#include <ns3/header.h>
#include <ns3/inet-socket-address.h>
#include <ns3/packet.h>
#include <ns3/simulator.h>
#include <ns3/socket.h>
#include <ns3/timestamp-tag.h>
#include <ns3/udp-l4-protocol.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "sim/ns3/addresses.hpp"
#include "sim/ns3/time.hpp"
#include "sim/ns3/timer.hpp"

namespace quicgym::ns3_host {

namespace {

// A datagram's stored bytes, put before a packet of virtual zeros: ns-3 then stores no zero either.
class PrefixHeader : public ns3::Header {
public:
    explicit PrefixHeader(const quic::Datagram& datagram) : datagram_(datagram) {}

    static ns3::TypeId GetTypeId() {
        static const ns3::TypeId id = ns3::TypeId("quicgym::PrefixHeader").SetParent<ns3::Header>();
        return id;
    }
    ns3::TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    std::uint32_t GetSerializedSize() const override { return datagram_.prefix_bytes; }
    void Serialize(ns3::Buffer::Iterator start) const override {
        start.Write(datagram_.prefix, datagram_.prefix_bytes);
    }
    std::uint32_t Deserialize(ns3::Buffer::Iterator) override {
        return 0;
    }  // received bytes are copied instead
    void Print(std::ostream& out) const override { out << "QUIC"; }

private:
    const quic::Datagram& datagram_;
};

}  // namespace

// Drives one endpoint by one UDP socket and one timer, in the order that both hosts share: timers
// that are due, then the datagram, then what the endpoint wants to send.
template <typename Endpoint>
class QuicFlow::EndpointDriver {
public:
    EndpointDriver(Endpoint& endpoint, const ns3::Ptr<ns3::Node>& node, ns3::Ipv4Address own,
                   ns3::Ipv4Address peer, bool ecn, std::uint32_t flow, std::vector<Delivery>* deliveries,
                   Failure& failure)
        : endpoint_(endpoint),
          ecn_(ecn),
          flow_(flow),
          deliveries_(deliveries),
          failure_(failure),
          timer_(node->GetId(), [this] { on_timer(); }),
          socket_(node->GetObject<ns3::UdpL4Protocol>()->CreateSocket()) {
        socket_->SetAttribute("MtuDiscover", ns3::BooleanValue(true));  // RFC 9000 14: never fragmented
        socket_->SetAllowBroadcast(true);  // spares a search for broadcast addresses per datagram
        socket_->Bind(ns3::InetSocketAddress(own, kPort));
        socket_->Connect(ns3::InetSocketAddress(peer, kPort));
        if (ecn) socket_->SetIpRecvTos(true);
        socket_->SetRecvCallback(ns3::MakeCallback(&EndpointDriver::on_readable, this));
        endpoint_.poll_datagram(0, scratch_);  // arms the first timeout; nothing is sent before it
        timer_.arm(endpoint_.next_timeout());
    }

    // Something other than time or a datagram changed what the endpoint may send. Within an event of the
    // node, since what ns-3 schedules takes its place among simultaneous events from there.
    void poll_soon() {
        poll_due_ = true;
        timer_.arm(now());
    }

    Time one_way_delay_sum() const { return one_way_delay_sum_; }

    void release() {
        socket_->SetRecvCallback(ns3::MakeNullCallback<void, ns3::Ptr<ns3::Socket>>());
        socket_ = nullptr;
    }

private:
    void on_timer() {
        try {
            const Time time = now();
            if (poll_due_) {
                poll_due_ = false;
                send_pending(time);
            }
            drive(time);
            timer_.arm(endpoint_.next_timeout());
        } catch (...) {
            failure_.capture();
        }
    }

    void on_readable(ns3::Ptr<ns3::Socket>) {
        try {
            const Time time = now();
            ns3::Address from;
            while (const ns3::Ptr<ns3::Packet> packet = socket_->Recv()) {
                drive(time);
                receive(time, *packet);
                send_pending(time);
                drive(time);
            }
            timer_.arm(endpoint_.next_timeout());
        } catch (...) {
            failure_.capture();
        }
    }

    void drive(Time time) {
        while (endpoint_.next_timeout() <= time) {
            endpoint_.on_timeout(time);
            send_pending(time);
        }
    }

    void receive(Time time, const ns3::Packet& packet) {
        std::uint8_t prefix[quic::kMaxPrefixBytes];
        const std::uint32_t prefix_bytes = packet.CopyData(prefix, quic::kMaxPrefixBytes);
        quic::DatagramView view{prefix, prefix_bytes, packet.GetSize(), quic::Ecn::not_ect};
        if (ecn_) {
            ns3::SocketIpTosTag tag;
            if (packet.PeekPacketTag(tag)) view.ecn = static_cast<quic::Ecn>(tag.GetTos() & 3);
        }
        if constexpr (std::is_same_v<Endpoint, quic::Receiver>) {
            ns3::TimestampTag sent;
            packet.PeekPacketTag(sent);
            one_way_delay_sum_ += time - sent.GetTimestamp().GetTimeStep();
            const auto packet_number = endpoint_.on_datagram(time, view);
            if (packet_number && deliveries_ != nullptr)
                deliveries_->push_back({flow_, *packet_number, time});
        } else {
            endpoint_.on_datagram(time, view);
        }
    }

    void send_pending(Time time) {
        while (endpoint_.poll_datagram(time, scratch_)) {
            auto packet =
                ns3::Create<ns3::Packet>(std::uint32_t{scratch_.size_bytes} - scratch_.prefix_bytes);
            packet->AddHeader(PrefixHeader(scratch_));
            if constexpr (std::is_same_v<Endpoint, quic::Sender>) {
                packet->AddPacketTag(ns3::TimestampTag(ns3::Simulator::Now()));
            }
            if (scratch_.ecn != last_ecn_) {
                last_ecn_ = scratch_.ecn;
                socket_->SetIpTos(static_cast<std::uint8_t>(last_ecn_));
            }
            if (socket_->Send(packet) < 0) {
                throw std::runtime_error("ns-3 refused to send a datagram of " +
                                         std::to_string(scratch_.size_bytes) + " bytes, socket error " +
                                         std::to_string(socket_->GetErrno()));
            }
        }
    }

    Endpoint& endpoint_;
    const bool ecn_;
    const std::uint32_t flow_;
    std::vector<Delivery>* const deliveries_;
    Failure& failure_;
    Timer timer_;
    ns3::Ptr<ns3::Socket> socket_;
    quic::Datagram scratch_;
    quic::Ecn last_ecn_ = quic::Ecn::not_ect;
    bool poll_due_ = false;
    Time one_way_delay_sum_ = 0;  // of the datagrams that a receiver got
};

QuicFlow::QuicFlow(const Scenario& scenario, std::size_t index, std::uint64_t seed,
                   const ns3::Ptr<ns3::Node>& sender_node, const ns3::Ptr<ns3::Node>& receiver_node,
                   std::vector<Delivery>* deliveries, Failure& failure)
    : start_(flow_start(scenario, index, seed)),
      sender_(scenario.flows[index], index, seed, start_),
      receiver_(scenario.flows[index], start_) {
    const bool ecn = scenario.flows[index].ecn;
    const auto number = static_cast<std::uint32_t>(index);
    sender_driver_ = std::make_unique<EndpointDriver<quic::Sender>>(
        sender_, sender_node, sender_address(index), receiver_address(index), ecn, number, nullptr, failure);
    receiver_driver_ = std::make_unique<EndpointDriver<quic::Receiver>>(
        receiver_, receiver_node, receiver_address(index), sender_address(index), ecn, number, deliveries,
        failure);
}

QuicFlow::~QuicFlow() = default;

void QuicFlow::add_statistics(Time time, FlowStatistics& statistics) const {
    sender_.add_statistics(time, statistics);
    receiver_.add_statistics(time, statistics);
    statistics.one_way_delay_sum_seconds = to_seconds(receiver_driver_->one_way_delay_sum());
}

TraceSample QuicFlow::sample(Time time) const {
    TraceSample sample = sender_.sample(time);
    sample.received_bytes = receiver_.received_bytes();
    return sample;
}

ControllerSnapshot QuicFlow::snapshot() const {
    return sender_.controller().snapshot();
}

ParameterValues QuicFlow::parameters() const {
    return sender_.controller().parameters();
}

void QuicFlow::set_parameters(const ParameterValues& values) {
    sender_.set_parameters(now(), values);
    sender_driver_->poll_soon();
}

void QuicFlow::release() {
    sender_driver_->release();
    receiver_driver_->release();
}

}  // namespace quicgym::ns3_host
