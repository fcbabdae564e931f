#include "sim/ns3/tcp_flow.hpp"

#include <ns3/boolean.h>
#include <ns3/enum.h>
#include <ns3/inet-socket-address.h>
#include <ns3/object-factory.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/tcp-bbr.h>
#include <ns3/tcp-congestion-ops.h>
#include <ns3/tcp-cubic.h>
#include <ns3/tcp-l4-protocol.h>
#include <ns3/tcp-linux-reno.h>
#include <ns3/tcp-socket-base.h>
#include <ns3/tcp-vegas.h>
#include <ns3/timestamp-tag.h>
#include <ns3/uinteger.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "sim/ns3/addresses.hpp"

namespace quicgym::ns3_host {

namespace {

constexpr std::uint64_t kIpBytes = 20;
constexpr std::uint64_t kTcpBytes = 20 + 12;  // with the timestamp option, which ns-3 switches on
constexpr std::uint32_t kBufferBytes = 1U << 28;
constexpr std::uint64_t kWriteAheadBytes = 1U << 18;
constexpr std::uint64_t kLargestWriteBytes = 1U << 16;
constexpr std::uint32_t kInitialWindowSegments = 10;
constexpr std::uint32_t kAckEvery = 2;

ns3::TypeId congestion_control(const std::string& name) {
    if (name == "newreno") return ns3::TcpNewReno::GetTypeId();
    if (name == "linux-reno") return ns3::TcpLinuxReno::GetTypeId();
    if (name == "cubic") return ns3::TcpCubic::GetTypeId();
    if (name == "bbr") return ns3::TcpBbr::GetTypeId();
    if (name == "vegas") return ns3::TcpVegas::GetTypeId();
    throw std::invalid_argument("ns-3's TCP has no congestion control \"" + name +
                                "\" here; there are newreno, linux-reno, cubic, bbr and vegas");
}

// The number as a value of the attribute, or null when the type has no attribute of that name. Checked here
// because ns-3 ends the process over a wrong one.
ns3::Ptr<ns3::AttributeValue> attribute_value(ns3::TypeId type, const std::string& name,
                                              const std::vector<double>& numbers) {
    ns3::TypeId::AttributeInformation information;
    if (!type.LookupAttributeByName(name, &information)) return nullptr;
    if (name == "SegmentSize") {
        throw std::invalid_argument(
            "parameter 'SegmentSize' of ns-3's TCP comes from the flow's max_datagram_bytes; set that");
    }
    if (name == "HighGain" && !numbers.empty() && numbers.front() <= 0.0) {
        throw std::invalid_argument("parameter 'HighGain' of ns-3's TCP must be above 0");
    }
    std::ostringstream text;
    for (std::size_t i = 0; i < numbers.size(); ++i) text << (i > 0 ? ", " : "") << numbers[i];
    // ns-3 reads as much of a text as it can and would take 2.5 for 2.
    const std::string kind = information.checker->GetValueTypeName();
    const bool integer = kind == "ns3::UintegerValue" || kind == "ns3::IntegerValue";
    const bool fits = numbers.size() == 1 && std::isfinite(numbers.front()) &&
                      (!integer || numbers.front() == std::floor(numbers.front()));
    auto value = fits ? information.checker->CreateValidValue(ns3::StringValue(text.str())) : nullptr;
    if (!value) {
        throw std::invalid_argument(
            "parameter '" + name + "' of ns-3's TCP is '" + text.str() + "', but " + type.GetName() +
            "::" + name + " takes " +
            (kind == "ns3::BooleanValue"
                 ? "0 or 1"
                 : "one value of type " + information.checker->GetUnderlyingTypeInformation()));
    }
    return value;
}

// A TCP flow's parameters are attributes of ns-3's congestion control or of its socket.
ns3::Ptr<ns3::TcpCongestionOps> create_congestion_control(const Flow& flow) {
    ns3::ObjectFactory factory;
    const ns3::TypeId type = congestion_control(flow.controller);
    factory.SetTypeId(type);
    for (const auto& [name, numbers] : flow.parameters) {
        if (const auto value = attribute_value(type, name, numbers)) {
            factory.Set(name, *value);
        } else if (!attribute_value(ns3::TcpSocketBase::GetTypeId(), name, numbers)) {
            throw std::invalid_argument("neither " + type.GetName() +
                                        " nor ns3::TcpSocketBase has an attribute '" + name + "'");
        }
    }
    return factory.Create<ns3::TcpCongestionOps>();
}

ns3::Ptr<ns3::Socket> create_socket(const ns3::Ptr<ns3::Node>& node, const Flow& flow,
                                    std::uint64_t segment_bytes) {
    auto tcp = node->GetObject<ns3::TcpL4Protocol>();
    if (!tcp) {
        tcp = ns3::CreateObject<ns3::TcpL4Protocol>();
        node->AggregateObject(tcp);
    }
    auto socket = ns3::DynamicCast<ns3::TcpSocketBase>(tcp->CreateSocket());
    socket->SetCongestionControlAlgorithm(create_congestion_control(flow));
    socket->SetAttribute("SegmentSize", ns3::UintegerValue(segment_bytes));
    socket->SetAttribute("InitialCwnd", ns3::UintegerValue(kInitialWindowSegments));
    socket->SetAttribute("DelAckCount", ns3::UintegerValue(kAckEvery));
    socket->SetAttribute("SndBufSize", ns3::UintegerValue(kBufferBytes));
    socket->SetAttribute("RcvBufSize", ns3::UintegerValue(kBufferBytes));
    socket->SetAttribute("Sack", ns3::BooleanValue(true));
    socket->SetUseEcn(flow.ecn ? ns3::TcpSocketState::On : ns3::TcpSocketState::Off);
    for (const auto& [name, numbers] : flow.parameters) {
        if (const auto value = attribute_value(ns3::TcpSocketBase::GetTypeId(), name, numbers)) {
            socket->SetAttribute(name, *value);
        }
    }
    return socket;
}

std::uint64_t datagram_bytes(const ns3::Packet& payload, const ns3::TcpHeader& header) {
    return payload.GetSize() + header.GetSerializedSize() + kIpBytes - kUdpIpBytes;
}

}  // namespace

void check_tcp_flow(const Flow& flow) {
    create_congestion_control(flow);
}

TcpFlow::TcpFlow(const Scenario& scenario, std::size_t index, std::uint64_t seed,
                 const ns3::Ptr<ns3::Node>& sender_node, const ns3::Ptr<ns3::Node>& receiver_node)
    : start_(flow_start(scenario, index, seed)),
      stop_(scenario.flows[index].stop),
      segment_bytes_(scenario.flows[index].max_datagram_bytes + kUdpIpBytes - kIpBytes - kTcpBytes),
      application_(scenario.flows[index].application, segment_bytes_, start_),
      socket_(create_socket(sender_node, scenario.flows[index], segment_bytes_)),
      listener_(create_socket(receiver_node, scenario.flows[index], segment_bytes_)),
      peer_(receiver_address(index)),
      timer_(sender_node->GetId(), [this] { on_timer(); }),
      window_(kInitialWindowSegments * segment_bytes_),
      window_integral_(start_, window_),
      sent_bins_(start_, stop_),
      received_bins_(start_, stop_) {
    socket_->Bind(ns3::InetSocketAddress(sender_address(index), kPort));
    socket_->SetDataSentCallback(ns3::MakeCallback(&TcpFlow::on_room, this));
    socket_->TraceConnectWithoutContext("Tx", ns3::MakeCallback(&TcpFlow::on_sent, this));
    socket_->TraceConnectWithoutContext("Rx", ns3::MakeCallback(&TcpFlow::on_acknowledged, this));
    socket_->TraceConnectWithoutContext("CongestionWindow", ns3::MakeCallback(&TcpFlow::on_window, this));
    socket_->TraceConnectWithoutContext("BytesInFlight", ns3::MakeCallback(&TcpFlow::on_in_flight, this));
    socket_->TraceConnectWithoutContext("RTT", ns3::MakeCallback(&TcpFlow::on_smoothed_rtt, this));
    socket_->TraceConnectWithoutContext("PacingRate", ns3::MakeCallback(&TcpFlow::on_pacing_rate, this));
    socket_->TraceConnectWithoutContext("CongState", ns3::MakeCallback(&TcpFlow::on_state, this));
    socket_->TraceConnectWithoutContext("EcnState", ns3::MakeCallback(&TcpFlow::on_ecn_state, this));

    listener_->Bind(ns3::InetSocketAddress(receiver_address(index), kPort));
    // The accepted socket is a copy and has the connection from the start: where the handshake's last packet
    // is lost, it is accepted only after the first packet of data has arrived.
    listener_->TraceConnectWithoutContext("Rx", ns3::MakeCallback(&TcpFlow::on_received, this));
    listener_->Listen();
    listener_->SetAcceptCallback(ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
                                 ns3::MakeCallback(&TcpFlow::on_accepted, this));
    if (start_ < stop_) timer_.arm(start_);
}

void TcpFlow::on_timer() {
    const Time time = now();
    if (finished_ || time < start_) return;
    if (!started_) {
        started_ = true;
        socket_->Connect(ns3::InetSocketAddress(peer_, kPort));
    }
    if (time < stop_) write();
    if (time >= stop_ || (application_.finite() && written_ == application_.total_bytes())) {
        finished_ = true;
        socket_->Close();  // FIN follows what is buffered
        return;
    }
    timer_.arm(std::min(application_.next_write(), stop_));
}

// Keeps more in TCP's buffer than it may send at once, and no more: what is there at the flow's stop
// still goes out.
void TcpFlow::write() {
    const std::uint64_t available = application_.written_bytes(now()) - written_;
    const std::uint64_t unsent = written_ - first_sent_;
    const std::uint64_t wanted = window_ + kWriteAheadBytes;
    if (unsent > wanted / 2) return;
    for (std::uint64_t left = std::min(available, wanted - unsent); left > 0;) {
        const std::uint64_t bytes = std::min(left, kLargestWriteBytes);
        if (socket_->Send(ns3::Create<ns3::Packet>(static_cast<std::uint32_t>(bytes))) < 0)
            return;  // later, then
        written_ += bytes;
        left -= bytes;
    }
}

void TcpFlow::on_room(ns3::Ptr<ns3::Socket>, std::uint32_t) {
    on_timer();
}

void TcpFlow::on_accepted(ns3::Ptr<ns3::Socket> socket, const ns3::Address&) {
    accepted_ = socket;
    socket->SetRecvCallback(ns3::MakeCallback(&TcpFlow::on_readable, this));
    socket->SetCloseCallbacks(ns3::MakeCallback(&TcpFlow::on_closed, this),
                              ns3::MakeNullCallback<void, ns3::Ptr<ns3::Socket>>());
}

void TcpFlow::on_readable(ns3::Ptr<ns3::Socket> socket) {
    for (;;) {
        const ns3::Ptr<ns3::Packet> packet = socket->Recv();
        if (!packet || packet->GetSize() == 0) break;
        goodput_bytes_ += packet->GetSize();
    }
    if (application_.finite() && completion_ == kNever && goodput_bytes_ == application_.total_bytes()) {
        completion_ = now();
        sent_bins_.finish(completion_, sent_bytes_);
        received_bins_.finish(completion_, received_bytes_);
    }
}

void TcpFlow::on_closed(ns3::Ptr<ns3::Socket> socket) {
    socket->Close();
}

void TcpFlow::on_sent(ns3::Ptr<const ns3::Packet> payload, const ns3::TcpHeader& header,
                      ns3::Ptr<const ns3::TcpSocketBase>) {
    const std::uint32_t bytes = payload->GetSize();
    if (bytes == 0) return;
    payload->AddPacketTag(ns3::TimestampTag(ns3::Simulator::Now()));
    sent_bins_.advance(now(), sent_bytes_);
    ++sent_packets_;
    sent_bytes_ += datagram_bytes(*payload, header);
    const ns3::SequenceNumber32 first = header.GetSequenceNumber();
    const ns3::SequenceNumber32 end = first + bytes;
    if (first < highest_sent_) {
        ++lost_packets_;
        lost_bytes_ += datagram_bytes(*payload, header);
        for (SentSegment& segment : sent_segments_) {
            if (segment.end > end) break;
            if (segment.end > first) segment.retransmitted = true;
        }
    }
    if (end > highest_sent_) {
        first_sent_ += static_cast<std::uint64_t>(end - highest_sent_);
        sent_segments_.push_back({end, now(), first < highest_sent_});
        highest_sent_ = end;
    }
}

// RTT samples to the nanosecond: ns-3 takes its own from the timestamp option, in whole milliseconds. As in
// Karn's algorithm, an ACK that covers a retransmission says nothing.
void TcpFlow::on_acknowledged(ns3::Ptr<const ns3::Packet>, const ns3::TcpHeader& header,
                              ns3::Ptr<const ns3::TcpSocketBase>) {
    if ((header.GetFlags() & ns3::TcpHeader::ACK) == 0) return;
    const ns3::SequenceNumber32 acknowledged =
        std::min(header.GetAckNumber(), highest_sent_);  // FIN takes one too
    if (acknowledged <= acknowledged_) return;
    delivered_bytes_ += static_cast<std::uint64_t>(acknowledged - acknowledged_);
    acknowledged_ = acknowledged;
    Time newest_sent = 0;
    bool ambiguous = false;
    while (!sent_segments_.empty() && sent_segments_.front().end <= acknowledged) {
        newest_sent = sent_segments_.front().sent;
        ambiguous = ambiguous || sent_segments_.front().retransmitted;
        sent_segments_.pop_front();
    }
    if (ambiguous || newest_sent == 0) return;
    latest_rtt_ = now() - newest_sent;
    min_rtt_ = rtt_.count() == 0 ? latest_rtt_ : std::min(min_rtt_, latest_rtt_);
    rtt_.add(latest_rtt_);
}

void TcpFlow::on_received(ns3::Ptr<const ns3::Packet> payload, const ns3::TcpHeader& header,
                          ns3::Ptr<const ns3::TcpSocketBase>) {
    if (payload->GetSize() == 0) return;
    ns3::TimestampTag sent;
    payload->PeekPacketTag(sent);
    one_way_delays_.add(now() - sent.GetTimestamp().GetTimeStep());
    received_bins_.advance(now(), received_bytes_);
    ++received_packets_;
    received_bytes_ += datagram_bytes(*payload, header);
}

void TcpFlow::on_window(std::uint32_t, std::uint32_t after) {
    window_ = after;
    if (now() <= end()) window_integral_.set(now(), after);
}

void TcpFlow::on_in_flight(std::uint32_t, std::uint32_t after) {
    in_flight_ = after;
}

void TcpFlow::on_smoothed_rtt(ns3::Time, ns3::Time after) {
    smoothed_rtt_ = after.GetTimeStep();
}

void TcpFlow::on_pacing_rate(ns3::DataRate, ns3::DataRate after) {
    pacing_rate_ = static_cast<double>(after.GetBitRate()) / 8.0;
}

void TcpFlow::on_state(ns3::TcpSocketState::TcpCongState_t before,
                       ns3::TcpSocketState::TcpCongState_t after) {
    const auto lost = [](ns3::TcpSocketState::TcpCongState_t state) {
        return state == ns3::TcpSocketState::CA_RECOVERY || state == ns3::TcpSocketState::CA_LOSS;
    };
    if (lost(after) && !lost(before)) ++congestion_events_;
    if (after == ns3::TcpSocketState::CA_LOSS) ++timeouts_;
}

void TcpFlow::on_ecn_state(ns3::TcpSocketState::EcnState_t, ns3::TcpSocketState::EcnState_t after) {
    if (after == ns3::TcpSocketState::ECN_ECE_RCVD) ++ecn_marks_;
}

void TcpFlow::add_statistics(Time time, FlowStatistics& statistics) const {
    statistics.start = start_;
    statistics.completion = completion_;
    statistics.sent_packets += sent_packets_;
    statistics.sent_bytes += sent_bytes_;
    statistics.received_packets += received_packets_;
    statistics.received_bytes += received_bytes_;
    statistics.goodput_bytes += goodput_bytes_;
    statistics.declared_lost_packets += lost_packets_;
    statistics.congestion_events += congestion_events_;
    statistics.probe_timeouts += timeouts_;
    statistics.ecn_marks += ecn_marks_;
    statistics.rtt_samples += rtt_.count();
    statistics.rtt_sum_seconds += rtt_.sum_seconds();
    statistics.set_rtts(rtt_.buckets());
    statistics.min_rtt = min_rtt_;
    statistics.lowest_rtt = rtt_.lowest();
    statistics.one_way_delay_sum_seconds = one_way_delays_.sum_seconds();
    statistics.set_one_way_delays(one_way_delays_.buckets());

    const Time until = std::max(start_, std::min(time, end()));
    const auto packet_bytes = static_cast<double>(segment_bytes_);
    statistics.window_seconds = to_seconds(until - start_);
    statistics.window_packet_seconds = window_integral_.until(until) / packet_bytes;
    statistics.max_window_packets = static_cast<double>(window_integral_.maximum()) / packet_bytes;
    const RateSums sent = sent_bins_.at(time, sent_bytes_);
    statistics.send_rate_bins = sent.count;
    statistics.send_rate_variance = sent.variance();
    const RateSums received = received_bins_.at(time, received_bytes_);
    statistics.receive_rate_bins = received.count;
    statistics.receive_rate_variance = received.variance();
}

void TcpFlow::mark(Time time, FlowTotals& totals) {
    totals.rtts = rtt_.buckets();
    totals.one_way_delays = one_way_delays_.buckets();
    totals.send_rates = sent_bins_.at(time, sent_bytes_);
    totals.receive_rates = received_bins_.at(time, received_bytes_);
    window_integral_.mark(std::max(start_, std::min(time, end())));
    for (const std::uint64_t bytes : window_integral_.maxima()) {
        totals.max_windows_packets.push_back(static_cast<double>(bytes) /
                                             static_cast<double>(segment_bytes_));
    }
}

TraceSample TcpFlow::sample(Time time) const {
    TraceSample sample{};
    sample.time = time;
    sample.window_bytes = window_;
    sample.pacing_rate = pacing_rate_;
    sample.rtt = latest_rtt_;
    sample.smoothed_rtt = smoothed_rtt_;
    sample.in_flight_bytes = in_flight_;
    sample.sent_bytes = sent_bytes_;
    sample.delivered_bytes = delivered_bytes_;
    sample.lost_bytes = lost_bytes_;
    sample.received_bytes = received_bytes_;
    return sample;
}

ControllerSnapshot TcpFlow::snapshot() const {
    ControllerSnapshot snapshot;
    snapshot.window_bytes = window_;
    return snapshot;
}

void TcpFlow::set_parameters(const ParameterValues&) {
    throw std::invalid_argument("ns-3's TCP takes its parameters before it starts, not while it runs");
}

void TcpFlow::release() {
    socket_ = nullptr;
    listener_ = nullptr;
    accepted_ = nullptr;
}

}  // namespace quicgym::ns3_host
