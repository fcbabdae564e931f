// A UDP host in ns-3 of what speaks QUIC: a socket, and a timer for the endpoint's timeouts.
#pragma once

#include <ns3/boolean.h>
#include <ns3/header.h>
#include <ns3/inet-socket-address.h>
#include <ns3/node.h>
#include <ns3/packet.h>
#include <ns3/ptr.h>
#include <ns3/simulator.h>
#include <ns3/socket.h>
#include <ns3/timestamp-tag.h>
#include <ns3/trailer.h>
#include <ns3/udp-l4-protocol.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/ns3/addresses.hpp"
#include "sim/ns3/flow.hpp"
#include "sim/ns3/time.hpp"
#include "sim/ns3/timer.hpp"
#include "sim/quic/endpoint.hpp"
#include "sim/quic/receiver.hpp"

namespace quicgym::ns3_host {

// A datagram's stored bytes, put around a packet of virtual zeros: ns-3 then stores no zero either.
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

// The end of the tag of the AEAD.
class SealTrailer : public ns3::Trailer {
public:
    static constexpr std::uint32_t kBytes = sizeof(quic::Datagram::sealed_number);

    explicit SealTrailer(std::uint32_t sealed_number = 0) : sealed_number_(sealed_number) {}

    static ns3::TypeId GetTypeId() {
        static const ns3::TypeId id = ns3::TypeId("quicgym::SealTrailer").SetParent<ns3::Trailer>();
        return id;
    }
    ns3::TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    std::uint32_t GetSerializedSize() const override { return kBytes; }
    void Serialize(ns3::Buffer::Iterator end) const override {
        end.Prev(kBytes);
        end.WriteU32(sealed_number_);
    }
    std::uint32_t Deserialize(ns3::Buffer::Iterator end) override {
        end.Prev(kBytes);
        sealed_number_ = end.ReadU32();
        return kBytes;
    }
    void Print(std::ostream& out) const override { out << "packet number " << sealed_number_; }

    std::uint32_t sealed_number() const { return sealed_number_; }

private:
    std::uint32_t sealed_number_;
};

// The host of one endpoint: a UDP socket, and a timer for the endpoint's timeouts.
template <quic::Endpoint E>
class UdpHost {
public:
    UdpHost(E& endpoint, const ns3::Ptr<ns3::Node>& node, ns3::Ipv4Address own, ns3::Ipv4Address peer,
            bool ecn, std::uint32_t flow, std::vector<Delivery>* deliveries, Failure& failure)
        : endpoint_(endpoint),
          flow_(flow),
          deliveries_(deliveries),
          failure_(failure),
          timer_(node->GetId(), [this] { run(); }),
          socket_(node->GetObject<ns3::UdpL4Protocol>()->CreateSocket()) {
        socket_->SetAttribute("MtuDiscover", ns3::BooleanValue(true));  // RFC 9000 14: never fragmented
        socket_->SetAllowBroadcast(true);  // spares a search for broadcast addresses per datagram
        socket_->Bind(ns3::InetSocketAddress(own, kPort));
        socket_->Connect(ns3::InetSocketAddress(peer, kPort));
        if (ecn) read_ecn();
        socket_->SetRecvCallback(ns3::MakeCallback(&UdpHost::on_readable, this));
        arm_timer();
    }

    // For an endpoint whose timeout became earlier. What is due now becomes an event of the node, since what
    // ns-3 schedules takes its place among simultaneous events from there.
    void arm_timer() { timer_.arm(endpoint_.next_timeout()); }

    // From here on the codepoints of what arrives are read.
    void read_ecn() {
        ecn_ = true;
        socket_->SetIpRecvTos(true);
    }

    const DelayHistogram& one_way_delays() const { return one_way_delays_; }

    // Lets go of every ns-3 object; before Simulator::Destroy.
    void release() {
        socket_->SetRecvCallback(ns3::MakeNullCallback<void, ns3::Ptr<ns3::Socket>>());
        socket_ = nullptr;
    }

    // The interface of quic::drive.
    Time next_arrival() const { return socket_->GetRxAvailable() > 0 ? now() : kNever; }

    quic::DatagramView arrived() {
        const ns3::Ptr<ns3::Packet> packet = socket_->Recv();
        SealTrailer seal;
        packet->PeekTrailer(seal);
        quic::DatagramView view{arrived_, packet->CopyData(arrived_, quic::kMaxPrefixBytes),
                                packet->GetSize(), quic::Ecn::not_ect, seal.sealed_number()};
        if (ecn_) {
            ns3::SocketIpTosTag tag;
            if (packet->PeekPacketTag(tag)) view.ecn = static_cast<quic::Ecn>(tag.GetTos() & 3);
        }
        if constexpr (kReceives) {
            ns3::TimestampTag sent;
            packet->PeekPacketTag(sent);
            sent_ = sent.GetTimestamp().GetTimeStep();
            one_way_delays_.add(now() - sent_);
        }
        return view;
    }

    void on_received(Time time, const quic::Receipt& receipt) {
        if (deliveries_ != nullptr && receipt.packet_number != quic::kNoPacket)
            deliveries_->push_back({flow_, receipt.packet_number, time, sent_});
    }

    quic::Datagram& outgoing() { return outgoing_; }

    void send(Time) {
        auto packet = ns3::Create<ns3::Packet>(std::uint32_t{outgoing_.size_bytes} - outgoing_.prefix_bytes -
                                               SealTrailer::kBytes);
        packet->AddHeader(PrefixHeader(outgoing_));
        packet->AddTrailer(SealTrailer(outgoing_.sealed_number));
        if constexpr (!kReceives) packet->AddPacketTag(ns3::TimestampTag(ns3::Simulator::Now()));
        if (outgoing_.ecn != last_ecn_) {
            last_ecn_ = outgoing_.ecn;
            socket_->SetIpTos(static_cast<std::uint8_t>(last_ecn_));
        }
        if (socket_->Send(packet) < 0) {
            throw std::runtime_error("ns-3 refused to send a datagram of " +
                                     std::to_string(outgoing_.size_bytes) + " bytes, socket error " +
                                     std::to_string(socket_->GetErrno()));
        }
    }

private:
    static constexpr bool kReceives = std::is_same_v<E, quic::Receiver>;  // the flow's data

    void on_readable(ns3::Ptr<ns3::Socket>) { run(); }

    void run() {
        try {
            quic::drive(endpoint_, *this, now() + 1);
            arm_timer();
        } catch (...) {
            failure_.capture();
        }
    }

    E& endpoint_;
    bool ecn_ = false;
    const std::uint32_t flow_;
    std::vector<Delivery>* const deliveries_;
    Failure& failure_;
    Timer timer_;
    ns3::Ptr<ns3::Socket> socket_;
    std::uint8_t arrived_[quic::kMaxPrefixBytes];
    quic::Datagram outgoing_;
    quic::Ecn last_ecn_ = quic::Ecn::not_ect;
    Time sent_ = 0;                    // when the last datagram that arrived was
    DelayHistogram one_way_delays_{};  // of the datagrams that a receiver got
};

}  // namespace quicgym::ns3_host
