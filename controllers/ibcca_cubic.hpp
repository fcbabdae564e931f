// IBCCA or CUBIC, as the application's bursts demand: the switch that the IBCCA paper recommends in
// its section V ("the paper" below) and has not tried. The rule is ours.
#pragma once

#include "controllers/bbr_filters.hpp"
#include "controllers/controller.hpp"
#include "controllers/switching.hpp"

namespace quicgym {

struct IbccaCubicParameters {
    double cubic_above_s = 0.285;
    double ibcca_below_s = 0.18;
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

}  // namespace quicgym
