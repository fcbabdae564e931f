// IBCCA or CUBIC, as the application's bursts demand: the switch that the IBCCA paper recommends in
// its section V ("the paper" below) and has not tried. The rule is ours.
#include <algorithm>

#include "controllers/bbr_filters.hpp"
#include "controllers/controller.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"
#include "controllers/switching.hpp"

namespace quicgym {

namespace {

struct IbccaCubicParameters {
    double cubic_above_s = 0.47;
    double ibcca_below_s = 0.25;
    double rate_window_rounds = 10.0;
};

class IbccaCubic final : public Switching {
public:
    IbccaCubic(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<IbccaCubic>(*this); }

    void on_ack(const AckEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;

private:
    double seconds_ahead(const AckEvent& event);

    IbccaCubicParameters parameters_;
    WindowedMaximum delivery_rate_;  // bytes per second
    std::uint64_t round_count_ = 0;
    std::uint64_t least_unsent_bytes_ = UINT64_MAX;
};

constexpr char kName[] = "ibcca-cubic";
constexpr std::size_t kIbcca = 0;
constexpr std::size_t kCubic = 1;

const ParameterTable<IbccaCubicParameters>& table() {
    using P = IbccaCubicParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::cubic_above_s>("cubic_above_s", 0.0, 1000.0, "s",
                                     "CUBIC when the application is ahead of the network by more",
                                     "IBCCA V and figures 6 and 7; the rule is ours")
            .logarithmic(0.01),
        number<P, &P::ibcca_below_s>("ibcca_below_s", 0.0, 1000.0, "s",
                                     "IBCCA again when it is ahead by less; cubic_above_s if that is lower",
                                     "IBCCA figure 6; the rule is ours")
            .logarithmic(0.01),
        number<P, &P::rate_window_rounds>("rate_window_rounds", 1.0, 10000.0, "rounds",
                                          "Length of the maximum filter of the delivery rate",
                                          "BBR draft-00 4.1.1.2")
            .logarithmic(),
    };
    return rows;
}

IbccaCubic::IbccaCubic(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : Switching({{"ibcca"}, {"cubic"}}, max_datagram_bytes),
      parameters_(with_values(table(), kName, IbccaCubicParameters(), values)) {}

void IbccaCubic::on_ack(const AckEvent& event) {
    const double ahead = seconds_ahead(event);
    // In Startup the network's rate is not known yet, and everything would be ahead of it.
    const bool startup = snapshot().mode == ControllerMode::startup;
    if (ahead > parameters_.cubic_above_s && !startup) {
        activate(kCubic);
    } else if (ahead < parameters_.ibcca_below_s) {
        activate(kIbcca);
    }
    Switching::on_ack(event);
}

// How long the network needs for what the application has written faster than it could be sent. The
// least that ever waited does not count: it is what a bulk transfer has before it, not a burst.
double IbccaCubic::seconds_ahead(const AckEvent& event) {
    round_count_ += event.round_start ? 1 : 0;
    if (event.sample.delivery_rate > 0.0) {
        delivery_rate_.update(event.sample.delivery_rate, round_count_,
                              static_cast<std::uint64_t>(parameters_.rate_window_rounds));
    }
    least_unsent_bytes_ = std::min(least_unsent_bytes_, event.unsent_bytes);
    if (delivery_rate_.best() <= 0.0) return 0.0;
    return static_cast<double>(event.unsent_bytes - least_unsent_bytes_) / delivery_rate_.best();
}

void IbccaCubic::set_parameters(const ParameterValues& values) {
    parameters_ = with_values(table(), kName, parameters_, values);
}

ParameterValues IbccaCubic::parameters() const {
    return to_values(table(), parameters_);
}

ControllerSpecification ibcca_cubic_specification() {
    return {kName, "IBCCA, and CUBIC while the application's bursts are too much for the network",
            "IBCCA, section V, recommends it and has not tried it; the rule is ours",
            specifications(table(), IbccaCubicParameters()), construct<IbccaCubic>};
}

const Registration registered(ibcca_cubic_specification, {.place = 120, .baseline_place = 70});

}  // namespace

}  // namespace quicgym
