// Agents of other authors: their networks in controllers with clocks and rules of their own. What they
// measure and do is in docs/how-to/authors-agents.md.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controllers/catalogue.hpp"
#include "controllers/controller.hpp"
#include "sim/policy/network.hpp"

namespace quicgym::policy {

struct AgentKind {
    std::string_view name;
    std::size_t inputs;       // of the network
    std::size_t outputs;      // of the network
    std::string_view output;  // Architecture::output
    ControllerSpecification (*specification)(std::shared_ptr<const Network> network);
};

const std::vector<AgentKind>& agent_kinds();
// Throws std::invalid_argument that lists what there is.
const AgentKind& find_agent(const std::string& name);

// What a connection measured in the rows of a table, in time order, as the inputs that an agent's code made
// of each row; for tests of fidelity. The columns are those of the agent's Measurements structure, in order.
// Throws std::invalid_argument for another number of columns.
std::vector<std::vector<double>> agent_features(const std::string& agent,
                                                const std::vector<std::vector<double>>& rows);

// What an agent makes of its rate or window when its network gives `output`, or chooses action `output`.
double agent_decision(const std::string& agent, double before, double output);

AgentKind aurora_agent();
AgentKind orca_agent();
AgentKind indigo_agent();
AgentKind astraea_agent();

// The latest frames of an agent's inputs, the oldest first.
class FrameStack {
public:
    explicit FrameStack(std::vector<float> first) : values_(std::move(first)) {}

    template <class Frame>
    void push(const Frame& frame) {
        const auto size = static_cast<std::ptrdiff_t>(frame.size());
        std::copy(values_.begin() + size, values_.end(), values_.begin());
        std::transform(frame.begin(), frame.end(), values_.end() - size,
                       [](double value) { return static_cast<float>(value); });
    }
    const std::vector<float>& values() const { return values_; }

private:
    std::vector<float> values_;
};

// Measures what Linux's TCP reports to an agent about the time since its last question.
class PeriodMeter {
public:
    void restart(Time now) {
        const Time least = min_rtt_;
        *this = PeriodMeter();
        start_ = now;
        min_rtt_ = least;
    }
    void on_ack(const AckEvent& event) {
        if (event.sample.delivery_rate > 0.0) {
            rate_sum_ += event.sample.delivery_rate;
            rate_samples_ += 1.0;
        }
        if (event.rtt <= 0) return;
        rtt_sum_ += to_seconds(event.rtt);
        rtt_samples_ += 1.0;
        min_rtt_ = min_rtt_ == 0 ? event.rtt : std::min(min_rtt_, event.rtt);
    }
    void on_lost(std::uint64_t bytes) { lost_bytes_ += static_cast<double>(bytes); }

    double seconds(Time now) const { return to_seconds(std::max<Time>(now - start_, 1)); }
    // The mean of the delivery-rate samples, bytes per second; 0: there are none.
    double throughput() const { return rate_samples_ > 0.0 ? rate_sum_ / rate_samples_ : 0.0; }
    double rtt_samples() const { return rtt_samples_; }  // one for an ACK frame
    double mean_rtt() const { return rtt_samples_ > 0.0 ? rtt_sum_ / rtt_samples_ : 0.0; }  // seconds
    double lost_rate(Time now) const { return lost_bytes_ / seconds(now); }  // bytes per second
    // The lowest RTT of the connection, in seconds. It never expires; 0 means that there is no sample yet.
    double min_rtt() const { return to_seconds(min_rtt_); }

private:
    Time start_ = 0;
    Time min_rtt_ = 0;
    double rate_sum_ = 0.0;
    double rate_samples_ = 0.0;
    double rtt_sum_ = 0.0;
    double rtt_samples_ = 0.0;
    double lost_bytes_ = 0.0;
};

// A controller that asks a network. The network is shared; what it remembers of the flow is in scratch_.
class AgentController : public Controller {
public:
    // Persistent congestion, ECN and losses mean nothing to most agents.
    void on_loss(const LossEvent&) override {}
    void on_persistent_congestion(Time) override {}
    void on_ecn(const EcnEvent&) override {}
    ControllerSnapshot snapshot() const override { return snapshot_in(ControllerMode::congestion_avoidance); }

protected:
    AgentController(std::shared_ptr<const Network> network, std::uint64_t max_datagram_bytes)
        : Controller(max_datagram_bytes), network_(std::move(network)) {}

    const std::vector<float>& ask(const std::vector<float>& inputs) {
        network_->compute(inputs.data(), scratch_);
        return scratch_.values;
    }

private:
    std::shared_ptr<const Network> network_;
    Scratch scratch_;
};

// Linux's pacing with a gain of 1, of what is allowed or in flight, in bytes per second.
inline double pacing_of(std::uint64_t window_bytes, std::uint64_t in_flight_bytes, Time smoothed_rtt) {
    const Time rtt = smoothed_rtt > 0 ? smoothed_rtt : kInitialRtt;
    return static_cast<double>(std::max(window_bytes, in_flight_bytes)) / to_seconds(rtt);
}

// ControllerSpecification::make for an agent's class.
template <class Made>
auto making(std::shared_ptr<const Network> network) {
    return [network = std::move(network)](const ParameterValues& values, std::uint64_t max_datagram_bytes) {
        return std::make_unique<Made>(network, values, max_datagram_bytes);
    };
}

}  // namespace quicgym::policy
