#include "real/embedding/agent.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace quicgym::embedding {

Agent::Agent(std::shared_ptr<const policy::Policy> policy, std::uint64_t max_datagram_bytes)
    : policy_(std::move(policy)),
      actuator_(policy_->action_space->make_actuator(*policy_->action_space, 0)),
      observer_(policy_->observations->make_observer(policy_->history_length, max_datagram_bytes)),
      observation_(policy_->network->architecture().observation_size),
      action_(policy_->action_space->size()) {}

Time Agent::decide(SteeredFlows& flow, const FlowState& state, Time now) {
    if (now == last_decision_) {
        throw std::invalid_argument("now_ns = " + std::to_string(now) +
                                    "; the policy has decided at this time");
    }
    if (last_decision_ < 0) {
        actuator_->start(flow);
        observer_->start(state);
    } else {
        observer_->update(state);
    }
    last_decision_ = now;

    environment::write_observation(*observer_, *actuator_, observation_.data());
    policy_->network->compute(observation_.data(), scratch_);
    const std::vector<float>& values = scratch_.values;
    if (policy_->network->chooses()) {
        const auto place = std::max_element(values.begin(), values.end()) - values.begin();
        action_.front() = static_cast<float>(place);
    } else {
        std::copy(values.begin(), values.end(), action_.begin());
    }
    policy_->action_space->check(0, action_);
    actuator_->apply(flow, action_.data());

    return now + policy_->decision_interval.after(state.sample.smoothed_rtt);
}

}  // namespace quicgym::embedding
