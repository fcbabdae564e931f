#include "controllers/scaled.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "controllers/window_pacing.hpp"

namespace quicgym {

namespace {

// Takes a factor out of `values`, or leaves `factor` as it is.
double taken(ParameterValues& values, const char* name, double factor) {
    const auto found = values.find(name);
    if (found == values.end()) return factor;
    const std::vector<double> numbers = found->second;
    values.erase(found);
    // Written so that NaN fails.
    if (numbers.size() == 1 && numbers.front() >= kSmallestFactor && numbers.front() <= kLargestFactor) {
        return numbers.front();
    }
    std::ostringstream text;
    text << "parameter '" << name << "' = " << (numbers.empty() ? 0.0 : numbers.front())
         << ": give a number from " << kSmallestFactor << " to " << kLargestFactor;
    throw std::invalid_argument(text.str());
}

}  // namespace

Scaled::Scaled(std::unique_ptr<Controller> inner) : Decorator(std::move(inner)) {
    publish();
}

void Scaled::set_parameters(const ParameterValues& values) {
    ParameterValues rest = values;
    const double window_factor = taken(rest, kWindowFactor, window_factor_);
    const double pacing_factor = taken(rest, kPacingFactor, pacing_factor_);
    if (!rest.empty()) Decorator::set_parameters(rest);
    window_factor_ = window_factor;
    pacing_factor_ = pacing_factor;
    publish();
}

ParameterValues Scaled::parameters() const {
    ParameterValues values = Decorator::parameters();
    values[kWindowFactor] = {window_factor_};
    values[kPacingFactor] = {pacing_factor_};
    return values;
}

void Scaled::publish() {
    // The product with 1 is exact, so that an unscaled controller is itself.
    window_bytes_ = inner().window_bytes();
    if (window_factor_ != 1.0) {
        window_bytes_ =
            std::max(static_cast<std::uint64_t>(window_factor_ * static_cast<double>(window_bytes_)),
                     kMinimumWindowDatagrams * max_datagram_bytes_);
    }
    pacing_rate_ = pacing_factor_ * inner().pacing_rate();
}

}  // namespace quicgym
