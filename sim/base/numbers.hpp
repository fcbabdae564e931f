// Reads numbers from text.
#pragma once

#include <locale>
#include <optional>
#include <sstream>
#include <string>

namespace quicgym {

// The number that the whole text is, in any locale; nothing where it is none. std::from_chars would do the
// same, but not every standard library has it for double.
inline std::optional<double> read_double(const std::string& text) {
    std::istringstream stream(text);
    stream.imbue(std::locale::classic());
    double number = 0.0;
    stream >> std::noskipws >> number;
    if (stream.fail() || stream.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
    return number;
}

}  // namespace quicgym
