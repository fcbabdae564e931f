// A strict reader of JSON (RFC 8259) for files from anywhere: bounded in depth, and every error says where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace quicgym::policy {

class JsonError : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

struct JsonMember;
struct JsonValue;
using JsonArray = std::vector<JsonValue>;
using JsonObject = std::vector<JsonMember>;  // in the file's order

// Numbers that are not whole, or do not fit into 64 bits, are doubles.
struct JsonValue {
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, JsonArray, JsonObject> value;

    bool is_null() const { return std::holds_alternative<std::nullptr_t>(value); }
    template <class Type>
    const Type* as() const {
        return std::get_if<Type>(&value);
    }
    std::optional<double> number() const;
    // A member of an object. Null if this is no object or has no such member.
    const JsonValue* member(std::string_view name) const;
};

struct JsonMember {
    std::string name;
    JsonValue value;
};

inline constexpr std::size_t kJsonDepth = 32;

// One value and nothing after it. Throws JsonError for text that is not JSON or not UTF-8, for a name that an
// object has twice, a number beyond a double, and more than kJsonDepth arrays and objects within one another.
JsonValue read_json(std::string_view text);

}  // namespace quicgym::policy
