// The file format of weights: https://github.com/huggingface/safetensors, section "Format".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/policy/dense.hpp"

namespace quicgym::policy {

// All tensors of a file, each of F32. Throws std::invalid_argument that says what is wrong: the header, a
// name or type that is unknown, or tensors that do not cover the rest of the file exactly once.
std::map<std::string, Tensor> read_safetensors(std::string_view bytes);

}  // namespace quicgym::policy
