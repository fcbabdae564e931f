// The ns-3 host: the same scenarios and endpoints as the native engine, over ns-3's UDP/IPv4 stack
// and point-to-point links, and beyond it ns-3's Wi-Fi, queue discs, its TCP, FlowMonitor and pcap.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/simulation.hpp"

namespace quicgym::ns3_host {

// ns-3 keeps its simulation in globals: one of these can exist in a process at a time.
class Ns3Simulation final : public Simulation {
public:
    // Throws std::invalid_argument for what ns-3 cannot do, and std::runtime_error while another
    // ns-3 simulation exists in this process.
    Ns3Simulation(const Scenario& scenario, std::uint64_t seed);
    ~Ns3Simulation() override;  // close()

    Time now() const override;
    void run_until(Time until) override;
    std::size_t flow_count() const override;
    FlowStatistics statistics(std::size_t flow) const override;
    FlowTotals totals(std::size_t flow) override;
    FlowState state(std::size_t flow) const override;
    std::size_t hop_count() const override;
    QueueSample queue(std::size_t hop) const override;
    QueueSample access_queue(std::size_t flow) const override;
    ControllerSnapshot snapshot(std::size_t flow) const override;
    ParameterValues parameters(std::size_t flow) const override;
    void set_parameters(std::size_t flow, const ParameterValues& values) override;
    const std::vector<TraceSample>& trace(std::size_t flow) const override;
    const std::vector<QueueSample>& queue_trace(std::size_t hop) const override;
    double queue_occupancy_seconds() const override;
    std::vector<Delivery> deliveries() const override;
    std::vector<Transfer> requests(std::size_t flow) const override;
    std::size_t short_flow_count() const override;
    ShortFlowTotals short_flow_totals(std::size_t entry) const override;
    std::vector<Transfer> transfers(std::size_t entry) const override;

    // Writes what is left of pcap and FlowMonitor files and frees ns-3 for the next simulation. The
    // results stay readable; run_until and set_parameters then throw std::runtime_error.
    void close();

private:
    class State;
    std::unique_ptr<State> state_;
};

// The nanoseconds that ns-3 needs to transmit so many bytes. Tests check the native engine's arithmetic with
// it.
Time ns3_transmission_time(std::uint64_t bytes, std::uint64_t rate_bits_per_second);

}  // namespace quicgym::ns3_host
