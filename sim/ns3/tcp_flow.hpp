// A flow of ns-3's own TCP, as cross traffic or for comparison.
#pragma once

#include <ns3/data-rate.h>
#include <ns3/node.h>
#include <ns3/ptr.h>
#include <ns3/sequence-number.h>
#include <ns3/socket.h>
#include <ns3/tcp-header.h>
#include <ns3/tcp-socket-base.h>

#include <algorithm>
#include <deque>

#include "sim/base/delay_histogram.hpp"
#include "sim/base/rate_bins.hpp"
#include "sim/base/time_integral.hpp"
#include "sim/ns3/flow.hpp"
#include "sim/ns3/timer.hpp"
#include "sim/quic/application.hpp"

namespace quicgym::ns3_host {

// Throws std::invalid_argument for a congestion control that ns-3 does not have.
void check_tcp_flow(const Flow& flow);

// Segments are such that a full one makes an IP packet as large as that of a QUIC datagram of
// max_datagram_bytes. Statistics count packets with payload, at the size of a QUIC datagram in the same
// IP packet; congestion windows and bytes in flight are TCP's own, in payload. What TCP retransmits
// counts as declared lost, what times out as a probe timeout. Buffers never limit the flow.
//
// At the flow's stop nothing more is written, and what TCP has buffered, about a window, still goes out.
class TcpFlow final : public SimulatedFlow {
public:
    TcpFlow(const Scenario& scenario, std::size_t index, std::uint64_t seed,
            const ns3::Ptr<ns3::Node>& sender_node, const ns3::Ptr<ns3::Node>& receiver_node);

    Time start() const override { return start_; }
    void add_statistics(Time now, FlowStatistics& statistics) const override;
    void mark(Time now, FlowTotals& totals) override;
    TraceSample sample(Time now) const override;
    ControllerSnapshot snapshot() const override;
    ParameterValues parameters() const override { return {}; }
    void set_parameters(const ParameterValues& values) override;
    void release() override;

private:
    // Sent for the first time and not yet acknowledged.
    struct SentSegment {
        ns3::SequenceNumber32 end;
        Time sent;
        bool retransmitted;
    };

    Time end() const { return std::min(stop_, completion_); }
    void on_timer();
    void write();
    void on_accepted(ns3::Ptr<ns3::Socket> socket, const ns3::Address& from);
    void on_readable(ns3::Ptr<ns3::Socket> socket);
    void on_room(ns3::Ptr<ns3::Socket> socket, std::uint32_t bytes);
    void on_closed(ns3::Ptr<ns3::Socket> socket);

    void on_sent(ns3::Ptr<const ns3::Packet> payload, const ns3::TcpHeader& header,
                 ns3::Ptr<const ns3::TcpSocketBase> socket);
    void on_acknowledged(ns3::Ptr<const ns3::Packet> payload, const ns3::TcpHeader& header,
                         ns3::Ptr<const ns3::TcpSocketBase> socket);
    void on_received(ns3::Ptr<const ns3::Packet> payload, const ns3::TcpHeader& header,
                     ns3::Ptr<const ns3::TcpSocketBase> socket);
    void on_window(std::uint32_t before, std::uint32_t after);
    void on_in_flight(std::uint32_t before, std::uint32_t after);
    void on_smoothed_rtt(ns3::Time before, ns3::Time after);
    void on_pacing_rate(ns3::DataRate before, ns3::DataRate after);
    void on_state(ns3::TcpSocketState::TcpCongState_t before, ns3::TcpSocketState::TcpCongState_t after);
    void on_ecn_state(ns3::TcpSocketState::EcnState_t before, ns3::TcpSocketState::EcnState_t after);

    Time start_;
    Time stop_;
    std::uint64_t segment_bytes_;
    quic::ApplicationSource application_;
    ns3::Ptr<ns3::Socket> socket_;
    ns3::Ptr<ns3::Socket> listener_;
    ns3::Ptr<ns3::Socket> accepted_;
    ns3::Ipv4Address peer_;
    Timer timer_;

    bool started_ = false;
    bool finished_ = false;                  // no more to write
    std::uint64_t written_ = 0;              // handed to TCP
    std::uint64_t first_sent_ = 0;           // payload sent for the first time
    ns3::SequenceNumber32 highest_sent_{1};  // ns-3 starts at 0 and SYN takes one
    ns3::SequenceNumber32 acknowledged_{1};
    std::deque<SentSegment> sent_segments_;

    std::uint64_t window_ = 0;
    TimeIntegral window_integral_;
    std::uint64_t in_flight_ = 0;
    double pacing_rate_ = 0.0;
    Time latest_rtt_ = 0;
    Time smoothed_rtt_ = 0;
    Time min_rtt_ = 0;
    RttHistogram rtt_;

    std::uint64_t sent_packets_ = 0;
    std::uint64_t sent_bytes_ = 0;
    std::uint64_t received_packets_ = 0;
    std::uint64_t received_bytes_ = 0;
    std::uint64_t goodput_bytes_ = 0;
    std::uint64_t delivered_bytes_ = 0;
    std::uint64_t lost_packets_ = 0;
    std::uint64_t lost_bytes_ = 0;
    std::uint64_t congestion_events_ = 0;
    std::uint64_t timeouts_ = 0;
    std::uint64_t ecn_marks_ = 0;
    Time completion_ = kNever;
    DelayHistogram one_way_delays_{};
    RateBins sent_bins_;
    RateBins received_bins_;
};

}  // namespace quicgym::ns3_host
