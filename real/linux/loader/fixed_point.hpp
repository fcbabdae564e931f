// What the kernel's policy computes, as plain C++: for tests without privileges, and for a policy's check
// before it is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quicgym::linux_tcp {

// The observation after the last of these states, without the action in force; in units of 1 / 2^16. A state
// has the members of flow_state in bpf/observation.h, in their order.
std::vector<std::int32_t> observe(bool is_recent, std::uint64_t datagram_bytes,
                                  const std::vector<std::vector<std::uint64_t>>& states);

// The outputs of a network. `network` has the bytes of the struct in bpf/network.h, and a layer the members
// of struct layer, in their order.
std::vector<std::int32_t> compute(const std::string& network,
                                  const std::vector<std::vector<std::uint32_t>>& layers,
                                  const std::vector<std::int32_t>& inputs);

}  // namespace quicgym::linux_tcp
