// A learned policy that steers the controller of one flow, as a sender knows it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/environment/action_space.hpp"
#include "sim/environment/observation.hpp"
#include "sim/policy/dense.hpp"
#include "sim/policy/policy.hpp"
#include "sim/simulation.hpp"

namespace quicgym::embedding {

class Agent {
public:
    Agent(std::shared_ptr<const policy::Policy> policy, std::uint64_t max_datagram_bytes);

    // Observes what has happened since the last decision, and acts on the controller of a flow that is
    // number 0 of `flow`, and whose state is now `state`. Returns when the next decision is due. Throws
    // std::invalid_argument for a second decision at one time; no allocation after the first few.
    Time decide(SteeredFlows& flow, const FlowState& state, Time now);

private:
    std::shared_ptr<const policy::Policy> policy_;
    std::unique_ptr<environment::Actuator> actuator_;
    std::unique_ptr<environment::Observer> observer_;
    std::vector<float> observation_;
    std::vector<float> action_;
    policy::Scratch scratch_;
    Time last_decision_ = -1;  // none yet
};

}  // namespace quicgym::embedding
