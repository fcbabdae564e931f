// The interface through which the host uses a flow, whatever its transport.
#pragma once

#include <exception>

#include "sim/simulation.hpp"

namespace quicgym::ns3_host {

class SimulatedFlow {
public:
    virtual ~SimulatedFlow() = default;

    virtual Time start() const = 0;
    virtual void add_statistics(Time now, FlowStatistics& statistics) const = 0;
    // Adds the part of Simulation::totals other than the statistics.
    virtual void mark(Time now, FlowTotals& totals) = 0;
    virtual std::vector<Transfer> requests() const { return {}; }  // as Simulation::requests
    virtual TraceSample sample(Time now) const = 0;
    virtual ControllerSnapshot snapshot() const = 0;
    virtual ParameterValues parameters() const = 0;
    virtual void set_parameters(const ParameterValues& values) = 0;
    // Lets go of every ns-3 object; before Simulator::Destroy.
    virtual void release() = 0;
};

// An exception must not unwind through ns-3, which would lose the event that it was processing. A flow
// that catches one stops the simulation here, and the host throws it from run_until.
class Failure {
public:
    void capture();  // from a catch block
    bool captured() const { return error_ != nullptr; }
    void rethrow();

private:
    std::exception_ptr error_;
};

}  // namespace quicgym::ns3_host
