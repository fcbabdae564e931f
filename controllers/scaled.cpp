#include "controllers/scaled.hpp"

#include <algorithm>

#include "controllers/parameters.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

namespace {

const ParameterTable<ScaledParameters>& table() {
    using P = ScaledParameters;
    constexpr double kSmallest = 1.0 / 16.0, kLargest = 16.0;
    const char* const source = "Abbasloo et al., SIGCOMM 2020, equation 3, there up to 4";
    static const ParameterTable<P> rows = {
        number<P, &P::window_factor>(kWindowFactor, kSmallest, kLargest, "", "On the controller's window",
                                     source),
        number<P, &P::pacing_factor>(kPacingFactor, kSmallest, kLargest, "",
                                     "On the controller's pacing rate", source),
    };
    return rows;
}

}  // namespace

Scaled::Scaled(std::unique_ptr<Controller> inner) : Decorator(std::move(inner)) {
    publish();
}

void Scaled::set_parameters(const ParameterValues& values) {
    const ScaledParameters factors = with_values(table(), "scaled", factors_, select(table(), values, true));
    const ParameterValues rest = select(table(), values, false);
    if (!rest.empty()) Decorator::set_parameters(rest);
    factors_ = factors;
    publish();
}

ParameterValues Scaled::parameters() const {
    ParameterValues values = to_values(table(), factors_);
    values.merge(Decorator::parameters());
    return values;
}

void Scaled::publish() {
    // The product with 1 is exact, so that an unscaled controller is itself.
    window_bytes_ = inner().window_bytes();
    if (factors_.window_factor != 1.0) {
        window_bytes_ =
            std::max(static_cast<std::uint64_t>(factors_.window_factor * static_cast<double>(window_bytes_)),
                     kMinimumWindowDatagrams * max_datagram_bytes_);
    }
    pacing_rate_ = factors_.pacing_factor * inner().pacing_rate();
}

}  // namespace quicgym
