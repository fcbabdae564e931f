#include "sim/ns3/quic_flow.hpp"

#include "sim/ns3/addresses.hpp"
#include "sim/ns3/time.hpp"

namespace quicgym::ns3_host {

QuicFlow::QuicFlow(const Scenario& scenario, std::size_t index, std::uint64_t seed,
                   const ns3::Ptr<ns3::Node>& sender_node, const ns3::Ptr<ns3::Node>& receiver_node,
                   std::vector<Delivery>* deliveries, Failure& failure)
    : start_(flow_start(scenario, index, seed)),
      sender_(scenario.flows[index], index, seed, start_),
      receiver_(scenario.flows[index], start_, quic::make_client(scenario.flows[index], index, seed)) {
    sender_.show_frames_to(receiver_.client());
    const bool ecn = sender_.ecn_capable();
    const auto number = static_cast<std::uint32_t>(index);
    sender_host_ = std::make_unique<UdpHost<quic::Sender>>(
        sender_, sender_node, sender_address(index), receiver_address(index), ecn, number, nullptr, failure);
    receiver_host_ =
        std::make_unique<UdpHost<quic::Receiver>>(receiver_, receiver_node, receiver_address(index),
                                                  sender_address(index), ecn, number, deliveries, failure);
}

QuicFlow::~QuicFlow() = default;

void QuicFlow::add_statistics(Time time, FlowStatistics& statistics) const {
    sender_.add_statistics(time, statistics);
    receiver_.add_statistics(time, statistics);
    const DelayHistogram& delays = receiver_host_->one_way_delays();
    statistics.one_way_delay_sum_seconds = delays.sum_seconds();
    statistics.set_one_way_delays(delays.buckets());
}

void QuicFlow::mark(Time time, FlowTotals& totals) {
    sender_.mark(time, totals);
    totals.receive_rates = receiver_.rates(time);
    totals.one_way_delays = receiver_host_->one_way_delays().buckets();
}

std::vector<Transfer> QuicFlow::requests() const {
    const quic::Client* client = receiver_.client();
    return client != nullptr ? client->requests() : std::vector<Transfer>();
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
    if (sender_.ecn_capable()) {  // as of now, perhaps: a switch to a controller for L4S
        sender_host_->read_ecn();
        receiver_host_->read_ecn();
    }
    sender_host_->arm_timer();
}

void QuicFlow::release() {
    sender_host_->release();
    receiver_host_->release();
}

}  // namespace quicgym::ns3_host
