// A QUIC flow in ns-3: the same endpoints as in the native engine, over UDP sockets.
#pragma once

#include <ns3/node.h>
#include <ns3/ptr.h>

#include <memory>
#include <vector>

#include "sim/ns3/flow.hpp"
#include "sim/ns3/udp_host.hpp"
#include "sim/quic/receiver.hpp"
#include "sim/quic/sender.hpp"

namespace quicgym::ns3_host {

class QuicFlow final : public SimulatedFlow {
public:
    // Deliveries are appended to `deliveries` unless it is null.
    QuicFlow(const Scenario& scenario, std::size_t index, std::uint64_t seed,
             const ns3::Ptr<ns3::Node>& sender_node, const ns3::Ptr<ns3::Node>& receiver_node,
             std::vector<Delivery>* deliveries, Failure& failure);
    ~QuicFlow() override;

    Time start() const override { return start_; }
    void add_statistics(Time now, FlowStatistics& statistics) const override;
    void mark(Time now, FlowTotals& totals) override;
    std::vector<Transfer> requests() const override;
    TraceSample sample(Time now) const override;
    ControllerSnapshot snapshot() const override;
    ParameterValues parameters() const override;
    void set_parameters(const ParameterValues& values) override;
    void release() override;

private:
    Time start_;
    quic::Sender sender_;
    quic::Receiver receiver_;
    std::unique_ptr<UdpHost<quic::Sender>> sender_host_;
    std::unique_ptr<UdpHost<quic::Receiver>> receiver_host_;
};

}  // namespace quicgym::ns3_host
