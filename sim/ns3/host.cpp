#include "sim/ns3/host.hpp"

#include <ns3/data-rate.h>
#include <ns3/flow-monitor-helper.h>
#include <ns3/node-list.h>
#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/ns3/dumbbell.hpp"
#include "sim/ns3/network.hpp"
#include "sim/ns3/quic_flow.hpp"
#include "sim/ns3/scenario_check.hpp"
#include "sim/ns3/scheduler.hpp"
#include "sim/ns3/short_flow_hosts.hpp"
#include "sim/ns3/tcp_flow.hpp"
#include "sim/ns3/time.hpp"
#include "sim/ns3/wifi_lan.hpp"

namespace quicgym::ns3_host {

namespace {

// Holds the process's only ns-3 simulation.
class SimulatorLease {
public:
    explicit SimulatorLease(std::uint64_t seed) {
        if (taken_.exchange(true)) {
            throw std::runtime_error(
                "this process already has an ns-3 simulation, and ns-3 allows one at a time: "
                "close() the first one, or run this one in another process");
        }
        if (ns3::NodeList::GetNNodes() > 0) {
            taken_ = false;
            throw std::runtime_error(
                "other code in this process is using ns-3, which allows one simulation at a time: "
                "run this one in another process");
        }
        ns3::RngSeedManager::SetSeed(1);
        ns3::RngSeedManager::SetRun(seed);
        // Otherwise streams are numbered through a process's life.
        ns3::RngSeedManager::ResetNextStreamIndex();
        ns3::ObjectFactory scheduler;
        scheduler.SetTypeId(NodeOrderScheduler::GetTypeId());
        ns3::Simulator::SetScheduler(scheduler);
    }
    ~SimulatorLease() {
        ns3::Simulator::Destroy();
        taken_ = false;
    }
    SimulatorLease(const SimulatorLease&) = delete;
    SimulatorLease& operator=(const SimulatorLease&) = delete;

private:
    static inline std::atomic<bool> taken_ = false;
};

}  // namespace

void Failure::capture() {
    if (!error_) error_ = std::current_exception();
    ns3::Simulator::Stop();
}

void Failure::rethrow() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// Members that ns-3 calls back into outlive the lease, whose end disposes of ns-3's objects.
class Ns3Simulation::State {
public:
    State(const Scenario& scenario, std::uint64_t seed)
        : trace_interval_(scenario.trace_interval),
          traces_(scenario.flows.size()),
          flow_monitor_path_(scenario.flow_monitor_path) {
        check_scenario(scenario);
        lease_.emplace(seed);
        try {
            build(scenario, seed);
        } catch (...) {
            flow_monitor_path_.clear();
            close();
            throw;
        }
    }

    ~State() { close(); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    void require_open() const {
        if (!lease_) throw std::runtime_error("this ns-3 simulation is closed; make a new one");
    }

    void run_until(Time until) {
        if (until < now_) {
            throw std::invalid_argument("run_until: " + std::to_string(until) +
                                        " ns lies before the current time, " + std::to_string(now_) + " ns");
        }
        if (failed_) throw std::runtime_error("this simulation ended with an error; make a new one");
        // A separate context, so that any thread may call this and all other events at `until` come first.
        ns3::Simulator::ScheduleWithContext(kStopContext, to_ns3(until - now_),
                                            [] { ns3::Simulator::Stop(); });
        do {  // a stop may be left from a run that a failure ended
            ns3::Simulator::Run();
            now_ = ns3_host::now();
        } while (now_ < until && !failure_.captured());
        failed_ = failure_.captured();
        failure_.rethrow();
    }

    void close() {
        if (!lease_) return;
        if (flow_monitor_) {
            if (!flow_monitor_path_.empty()) {
                flow_monitor_->GetMonitor()->SerializeToXmlFile(flow_monitor_path_, false, false);
            }
            flow_monitor_.reset();
        }
        for (auto& flow : flows_) flow->release();
        for (auto& hosts : short_flows_) hosts->release();
        if (network_) network_->release();
        lease_.reset();
    }

    Time now_ = 0;
    std::vector<std::unique_ptr<SimulatedFlow>> flows_;
    std::vector<std::unique_ptr<ShortFlowHosts>> short_flows_;
    const Time trace_interval_;
    std::unique_ptr<Network> network_;
    std::vector<std::vector<TraceSample>> traces_;
    std::vector<std::vector<QueueSample>> queue_traces_;  // by hop
    std::vector<Delivery> deliveries_;

private:
    void build(const Scenario& scenario, std::uint64_t seed) {
        if (scenario.wifi) {
            network_ = std::make_unique<WifiLan>(scenario);
        } else {
            network_ = std::make_unique<Dumbbell>(scenario, seed);
        }
        queue_traces_.resize(network_->hop_count());
        std::vector<Delivery>* deliveries = scenario.record_deliveries ? &deliveries_ : nullptr;
        for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
            const auto& sender = network_->sender(i);
            const auto& receiver = network_->receiver(i);
            if (scenario.flows[i].transport == Transport::tcp) {
                flows_.push_back(std::make_unique<TcpFlow>(scenario, i, seed, sender, receiver));
            } else {
                flows_.push_back(
                    std::make_unique<QuicFlow>(scenario, i, seed, sender, receiver, deliveries, failure_));
            }
        }
        for (std::size_t entry = 0; entry < scenario.short_flows.size(); ++entry) {
            const std::size_t pair = flows_.size() + entry;
            short_flows_.push_back(std::make_unique<ShortFlowHosts>(
                scenario, entry, pair, seed, network_->sender(pair), network_->receiver(pair), failure_));
        }
        if (!scenario.pcap_prefix.empty()) network_->enable_pcap(scenario.pcap_prefix);
        if (!flow_monitor_path_.empty()) {
            flow_monitor_.emplace();
            // Its own start event would come after what the nodes do at time 0.
            flow_monitor_->InstallAll()->StartRightNow();
        }
        if (trace_interval_ > 0) schedule_sample();
    }

    void schedule_sample() {
        ns3::Simulator::ScheduleWithContext(kSampleContext, to_ns3(trace_interval_), [this] {
            const Time time = ns3_host::now();
            for (std::size_t i = 0; i < flows_.size(); ++i) {
                if (flows_[i]->start() > time) continue;
                FlowTotals totals;
                network_->add_totals(i, totals);
                TraceSample sample = flows_[i]->sample(time);
                sample.dropped_packets = totals.statistics.dropped_packets;
                traces_[i].push_back(sample);
            }
            for (std::size_t hop = 0; hop < queue_traces_.size(); ++hop)
                queue_traces_[hop].push_back(network_->sample_queue(hop, time));
            schedule_sample();
        });
    }

    std::string flow_monitor_path_;
    Failure failure_;
    bool failed_ = false;  // a run ended with it
    std::optional<SimulatorLease> lease_;
    std::optional<ns3::FlowMonitorHelper> flow_monitor_;
};

Ns3Simulation::Ns3Simulation(const Scenario& scenario, std::uint64_t seed)
    : state_(std::make_unique<State>(scenario, seed)) {}

Ns3Simulation::~Ns3Simulation() = default;

Time Ns3Simulation::now() const {
    return state_->now_;
}

void Ns3Simulation::run_until(Time until) {
    state_->require_open();
    state_->run_until(until);
}

std::size_t Ns3Simulation::flow_count() const {
    return state_->flows_.size();
}

FlowStatistics Ns3Simulation::statistics(std::size_t flow) const {
    FlowTotals totals;
    state_->flows_.at(flow)->add_statistics(state_->now_, totals.statistics);
    state_->network_->add_totals(flow, totals);
    return totals.statistics;
}

FlowTotals Ns3Simulation::totals(std::size_t flow) {
    FlowTotals totals;
    state_->flows_.at(flow)->add_statistics(state_->now_, totals.statistics);
    state_->network_->add_totals(flow, totals);
    state_->flows_[flow]->mark(state_->now_, totals);
    return totals;
}

FlowState Ns3Simulation::state(std::size_t flow) const {
    const FlowStatistics totals = statistics(flow);
    FlowState state;
    state.start = totals.start;
    state.completion = totals.completion;
    state.sample = state_->flows_[flow]->sample(state_->now_);
    state.received_packets = totals.received_packets;
    state.dropped_packets = totals.dropped_packets;
    state.rtt_samples = totals.rtt_samples;
    state.rtt_sum_seconds = totals.rtt_sum_seconds;
    state.min_rtt = totals.min_rtt;
    state.set_cycle(snapshot(flow));
    return state;
}

std::size_t Ns3Simulation::hop_count() const {
    return state_->network_->hop_count();
}

QueueSample Ns3Simulation::queue(std::size_t hop) const {
    return state_->network_->sample_queue(hop, state_->now_);
}

QueueSample Ns3Simulation::access_queue(std::size_t flow) const {
    return state_->network_->sample_access_queue(flow, state_->now_);
}

ControllerSnapshot Ns3Simulation::snapshot(std::size_t flow) const {
    return state_->flows_.at(flow)->snapshot();
}

ParameterValues Ns3Simulation::parameters(std::size_t flow) const {
    return state_->flows_.at(flow)->parameters();
}

void Ns3Simulation::set_parameters(std::size_t flow, const ParameterValues& values) {
    state_->require_open();
    state_->flows_.at(flow)->set_parameters(values);
}

const std::vector<TraceSample>& Ns3Simulation::trace(std::size_t flow) const {
    return state_->traces_.at(flow);
}

const std::vector<QueueSample>& Ns3Simulation::queue_trace(std::size_t hop) const {
    return state_->queue_traces_.at(hop);
}

double Ns3Simulation::queue_occupancy_seconds() const {
    return state_->network_->queue_occupancy_seconds(state_->now_);
}

std::vector<Transfer> Ns3Simulation::requests(std::size_t flow) const {
    return state_->flows_.at(flow)->requests();
}

std::size_t Ns3Simulation::short_flow_count() const {
    return state_->short_flows_.size();
}

ShortFlowTotals Ns3Simulation::short_flow_totals(std::size_t entry) const {
    ShortFlowTotals totals = state_->short_flows_.at(entry)->totals();
    FlowTotals passed;
    state_->network_->add_totals(flow_count() + entry, passed);
    totals.dropped_packets = passed.statistics.dropped_packets;
    totals.queue_samples = passed.statistics.queue_samples;
    totals.queue_delay_sum_seconds = passed.statistics.queue_delay_sum_seconds;
    return totals;
}

std::vector<Transfer> Ns3Simulation::transfers(std::size_t entry) const {
    return state_->short_flows_.at(entry)->transfers();
}

std::vector<Delivery> Ns3Simulation::deliveries() const {
    // Recorded in the order of nodes, where receivers may stand on either side.
    std::vector<Delivery> all = state_->deliveries_;
    std::sort(all.begin(), all.end(), [](const Delivery& a, const Delivery& b) {
        return a.time != b.time ? a.time < b.time : a.flow < b.flow;
    });
    return all;
}

void Ns3Simulation::close() {
    state_->close();
}

Time ns3_transmission_time(std::uint64_t bytes, std::uint64_t rate_bits_per_second) {
    if (rate_bits_per_second == 0) throw std::invalid_argument("transmission time: the rate must be above 0");
    if (bytes > UINT32_MAX) throw std::invalid_argument("transmission time: more bytes than ns-3 counts");
    return ns3::DataRate(rate_bits_per_second)
        .CalculateBytesTxTime(static_cast<std::uint32_t>(bytes))
        .GetTimeStep();
}

}  // namespace quicgym::ns3_host
