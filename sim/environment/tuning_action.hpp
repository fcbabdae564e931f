// The action space `tuning`: BBR's parameters, from coordinates in [-1, 1] and back.
//
// With a the coordinate:
//   gamma                     30 (1 + a) / (1 - a) packets: 0 at -1, eBCC's 30 at 0, infinity at 1
//   beta                      (1 + a) / 2
//   alpha                     1 - 10^(-1.5 (1 + a)), to three decimals: 0 at -1, 0.9 at -1/3, 0.999 at 1
//   smoothing_updates_rtprop  (1 + a) / 2; on from 0.5
//   cycle_length              1 + 3.5 (1 + a) phases, rounded: 8 at 1
//   entry_gain_minimum        1 + a
//   gain_1 … gain_8           1 + a / 2; those beyond the cycle's length are not used
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "controllers/controller.hpp"

namespace quicgym::environment {

inline constexpr std::size_t kMaxPhases = 8;
inline constexpr std::size_t kTuningSize = 6 + kMaxPhases;

// Fills `values` with the parameters named above; no allocation once it has them.
void decode_tuning(const float* coordinates, ParameterValues& values);

// The coordinates of these parameters; empty when one is missing or outside the space.
std::optional<std::vector<float>> encode_tuning(const ParameterValues& values);

}  // namespace quicgym::environment
