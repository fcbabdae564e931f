#include "sim/policy/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "sim/policy/json.hpp"

namespace quicgym::policy {

namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors are little-endian, and copied as such");

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxDimensions = 8;
constexpr std::string_view kMetadata = "__metadata__";

[[noreturn]] void refuse(const std::string& what) {
    throw std::invalid_argument("is no safetensors file: " + what);
}

// Empty unless it is an array of whole numbers from 0 on, at most so many.
std::vector<std::size_t> sizes_of(const JsonValue* value, std::size_t most, bool& valid) {
    std::vector<std::size_t> sizes;
    const JsonArray* const array = value == nullptr ? nullptr : value->as<JsonArray>();
    valid = array != nullptr && array->size() <= most;
    if (!valid) return sizes;
    for (const JsonValue& element : *array) {
        const auto* const number = element.as<std::int64_t>();
        valid = valid && number != nullptr && *number >= 0;
        if (!valid) return {};
        sizes.push_back(static_cast<std::size_t>(*number));
    }
    return sizes;
}

struct Place {
    std::size_t begin;
    std::size_t end;
};

void add_tensor(std::map<std::string, Tensor>& tensors, const std::string& name, const JsonValue& entry,
                std::string_view data, std::vector<Place>& places) {
    const std::string quoted = "tensor '" + name + "'";
    const JsonObject* const fields = entry.as<JsonObject>();
    if (fields == nullptr || fields->size() != 3) refuse(quoted + " needs dtype, shape and data_offsets");
    const JsonValue* const type = entry.member("dtype");
    const std::string* const type_name = type == nullptr ? nullptr : type->as<std::string>();
    if (type_name == nullptr) refuse(quoted + " has no dtype");
    if (*type_name != "F32") {
        throw std::invalid_argument(quoted + " is of " + *type_name + "; the architecture needs F32");
    }
    Tensor tensor;
    bool has_shape = false, has_offsets = false;
    tensor.shape = sizes_of(entry.member("shape"), kMaxDimensions, has_shape);
    const std::vector<std::size_t> offsets = sizes_of(entry.member("data_offsets"), 2, has_offsets);
    if (!has_shape) refuse(quoted + " has no valid shape");
    if (!has_offsets || offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size()) {
        refuse(quoted + " has no valid data_offsets");
    }
    const std::size_t bytes = offsets[1] - offsets[0];
    // Divided step by step, so that no product overflows.
    std::size_t left = bytes / sizeof(float);
    bool fits = bytes % sizeof(float) == 0;
    const bool is_empty = std::find(tensor.shape.begin(), tensor.shape.end(), 0U) != tensor.shape.end();
    for (const std::size_t size : tensor.shape) {
        if (is_empty) break;
        fits = fits && left % size == 0;
        left /= size;
    }
    if (!fits || (is_empty ? bytes != 0 : left != 1)) refuse(quoted + " has bytes that are not its shape's");
    tensor.values.resize(bytes / sizeof(float));
    if (bytes > 0) std::memcpy(tensor.values.data(), data.data() + offsets[0], bytes);
    places.push_back({offsets[0], offsets[1]});
    tensors.emplace(name, std::move(tensor));
}

JsonValue header_of(std::string_view text) {
    try {
        return read_json(text);
    } catch (const JsonError& error) {
        refuse(std::string("its header, ") + error.what());
    }
}

}  // namespace

std::map<std::string, Tensor> read_safetensors(std::string_view bytes) {
    std::uint64_t length = 0;
    if (bytes.size() < kLengthBytes) refuse("it has " + std::to_string(bytes.size()) + " bytes");
    std::memcpy(&length, bytes.data(), kLengthBytes);
    if (length > bytes.size() - kLengthBytes) refuse("its header is longer than the file");
    const std::string_view text = bytes.substr(kLengthBytes, length);
    const std::string_view data = bytes.substr(kLengthBytes + length);
    if (text.empty() || text.front() != '{') refuse("its header does not begin with '{'");
    const JsonValue header = header_of(text);
    std::map<std::string, Tensor> tensors;
    std::vector<Place> places;
    for (const auto& [name, entry] : *header.as<JsonObject>()) {
        if (name != kMetadata) add_tensor(tensors, name, entry, data, places);
    }
    std::sort(places.begin(), places.end(), [](const Place& one, const Place& other) {
        return one.begin != other.begin ? one.begin < other.begin : one.end < other.end;
    });
    std::size_t covered = 0;
    for (const Place& place : places) {
        if (place.begin != covered) refuse("its tensors overlap, or leave a gap");
        covered = place.end;
    }
    if (covered != data.size()) refuse("bytes follow its last tensor");
    return tensors;
}

}  // namespace quicgym::policy
