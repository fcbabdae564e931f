#include "sim/policy/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "sim/base/numbers.hpp"

namespace quicgym::policy {

namespace {

// The code point's length where the bytes at `place` are well-formed UTF-8 (RFC 3629, 4); 0: they are not.
std::size_t utf8_length(std::string_view text, std::size_t place) {
    const auto byte = [&](std::size_t i) -> unsigned {
        return place + i < text.size() ? static_cast<unsigned char>(text[place + i]) : 0U;
    };
    const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
    const unsigned first = byte(0), second = byte(1);
    if (first < 0x80U) return 1;
    if (first >= 0xC2U && first < 0xE0U) return follows(1) ? 2 : 0;
    if (first >= 0xE0U && first < 0xF0U) {
        const bool shortest = first != 0xE0U || second >= 0xA0U;
        const bool is_character = first != 0xEDU || second < 0xA0U;  // not half of a surrogate pair
        return shortest && is_character && follows(1) && follows(2) ? 3 : 0;
    }
    if (first >= 0xF0U && first < 0xF5U) {
        const bool in_range = (first != 0xF0U || second >= 0x90U) && (first != 0xF4U || second < 0x90U);
        return in_range && follows(1) && follows(2) && follows(3) ? 4 : 0;
    }
    return 0;
}

void append_utf8(std::string& text, unsigned code) {
    const auto add = [&text](unsigned byte) { text += static_cast<char>(byte); };
    if (code < 0x80U) {
        add(code);
    } else if (code < 0x800U) {
        add(0xC0U | code >> 6U);
        add(0x80U | (code & 0x3FU));
    } else if (code < 0x10000U) {
        add(0xE0U | code >> 12U);
        add(0x80U | (code >> 6U & 0x3FU));
        add(0x80U | (code & 0x3FU));
    } else {
        add(0xF0U | code >> 18U);
        add(0x80U | (code >> 12U & 0x3FU));
        add(0x80U | (code >> 6U & 0x3FU));
        add(0x80U | (code & 0x3FU));
    }
}

class JsonReader {
public:
    explicit JsonReader(std::string_view text) : text_(text) {}

    JsonValue document() {
        JsonValue value = this->value(0);
        skip_space();
        if (place_ != text_.size()) fail("something follows the value");
        return value;
    }

private:
    [[noreturn]] void fail(const std::string& what) const {
        const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(place_, text_.size()));
        const auto line = 1 + std::count(text_.begin(), end, '\n');
        throw JsonError("line " + std::to_string(line) + ", byte " + std::to_string(place_) + ": " + what);
    }

    char peek() const { return place_ < text_.size() ? text_[place_] : '\0'; }
    bool take(char expected) {
        if (peek() != expected || place_ >= text_.size()) return false;
        ++place_;
        return true;
    }
    void skip_space() {
        while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++place_;
    }
    static bool is_digit(char c) { return c >= '0' && c <= '9'; }

    JsonValue value(std::size_t depth) {
        skip_space();
        if (depth == kJsonDepth && (peek() == '{' || peek() == '['))
            fail("more than " + std::to_string(kJsonDepth) + " levels");
        switch (peek()) {
            case '{':
                return {object(depth)};
            case '[':
                return {array(depth)};
            case '"':
                return {string()};
            case 't':
                return word("true", {true});
            case 'f':
                return word("false", {false});
            case 'n':
                return word("null", {nullptr});
            default:
                return number();
        }
    }

    JsonValue word(std::string_view expected, JsonValue value) {
        if (text_.substr(place_, expected.size()) != expected) fail("no value");
        place_ += expected.size();
        return value;
    }

    JsonObject object(std::size_t depth) {
        JsonObject members;
        ++place_;
        skip_space();
        if (take('}')) return members;
        do {
            skip_space();
            if (peek() != '"') fail("a name in quotes is missing");
            std::string name = string();
            skip_space();
            if (!take(':')) fail("':' is missing after the name");
            members.push_back({std::move(name), value(depth + 1)});
            skip_space();
        } while (take(','));
        if (!take('}')) fail("',' or '}' is missing");
        check_unique(members);
        return members;
    }

    void check_unique(const JsonObject& members) const {
        std::vector<std::string_view> names;
        for (const auto& [name, value] : members) names.push_back(name);
        std::sort(names.begin(), names.end());
        const auto twice = std::adjacent_find(names.begin(), names.end());
        if (twice != names.end()) fail("an object has '" + std::string(*twice) + "' twice");
    }

    JsonArray array(std::size_t depth) {
        JsonArray values;
        ++place_;
        skip_space();
        if (take(']')) return values;
        do {
            values.push_back(value(depth + 1));
            skip_space();
        } while (take(','));
        if (!take(']')) fail("',' or ']' is missing");
        return values;
    }

    std::string string() {
        std::string result;
        ++place_;
        while (!take('"')) {
            if (place_ >= text_.size()) fail("a string has no end");
            if (static_cast<unsigned char>(peek()) < 0x20U) fail("a control character in a string");
            if (take('\\')) {
                escape(result);
                continue;
            }
            const std::size_t length = utf8_length(text_, place_);
            if (length == 0) fail("not UTF-8");
            result += text_.substr(place_, length);
            place_ += length;
        }
        return result;
    }

    void escape(std::string& result) {
        static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
        if (!take('u')) {
            const std::size_t letter = place_ < text_.size() ? kLetters.find(peek()) : std::string_view::npos;
            if (letter == std::string_view::npos) fail("unknown escape in a string");
            ++place_;
            result += kMeanings[letter];
            return;
        }
        unsigned code = hexadecimal();
        if (code >= 0xD800U && code < 0xDC00U && take('\\') && take('u')) {
            const unsigned low = hexadecimal();
            if (low < 0xDC00U || low >= 0xE000U) fail("half of a surrogate pair");
            code = 0x10000U + ((code - 0xD800U) << 10U) + (low - 0xDC00U);
        } else if (code >= 0xD800U && code < 0xE000U) {
            fail("half of a surrogate pair");
        }
        append_utf8(result, code);
    }

    unsigned hexadecimal() {
        unsigned code = 0;
        if (place_ + 4 > text_.size()) fail("\\u needs four hexadecimal digits");
        const char* const first = text_.data() + place_;
        const auto [end, error] = std::from_chars(first, first + 4, code, 16);
        if (error != std::errc{} || end != first + 4) fail("\\u needs four hexadecimal digits");
        place_ += 4;
        return code;
    }

    JsonValue number() {
        const std::size_t begin = place_;
        bool whole = true;
        take('-');
        if (!is_digit(peek())) fail("no value");
        if (!take('0')) skip_digits();
        if (take('.')) {
            whole = false;
            skip_digits();
        }
        if (take('e') || take('E')) {
            whole = false;
            if (!take('+')) take('-');
            skip_digits();
        }
        const char* const first = text_.data() + begin;
        const char* const last = text_.data() + place_;
        std::int64_t integer = 0;
        if (whole && std::from_chars(first, last, integer).ec == std::errc{}) return {integer};
        const auto real = read_double(std::string(first, last));
        if (!real || !std::isfinite(*real)) fail("a number beyond a double's range");
        return {*real};
    }

    void skip_digits() {
        if (!is_digit(peek())) fail("a digit is missing");
        while (is_digit(peek())) ++place_;
    }

    std::string_view text_;
    std::size_t place_ = 0;
};

}  // namespace

std::optional<double> JsonValue::number() const {
    if (const auto* integer = as<std::int64_t>()) return static_cast<double>(*integer);
    if (const auto* real = as<double>()) return *real;
    return std::nullopt;
}

const JsonValue* JsonValue::member(std::string_view name) const {
    const auto* const object = as<JsonObject>();
    if (object == nullptr) return nullptr;
    for (const JsonMember& candidate : *object) {
        if (candidate.name == name) return &candidate.value;
    }
    return nullptr;
}

JsonValue read_json(std::string_view text) {
    return JsonReader(text).document();
}

}  // namespace quicgym::policy
