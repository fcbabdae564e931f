// One packet more per round, half on loss: the example of docs/how-to/controllers.md.
#include <algorithm>
#include <memory>

#include "controllers/controller.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

namespace {

struct HalvingParameters {
    double decrease = 0.5;
};

class Halving final : public Controller {
public:
    Halving(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Halving>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;

private:
    void set_window(std::uint64_t window_bytes);

    HalvingParameters parameters_;
    RecoveryPeriod recovery_;
    WindowPacing pacing_;
};

constexpr char kName[] = "halving";

const ParameterTable<HalvingParameters>& table() {
    using P = HalvingParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::decrease>("decrease", 0.1, 0.9, "", "What a loss leaves", "none: an example"),
    };
    return rows;
}

Halving::Halving(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : Controller(max_datagram_bytes), parameters_(with_values(table(), kName, HalvingParameters(), values)) {
    set_window(initial_window_bytes(max_datagram_bytes));
}

void Halving::on_ack(const AckEvent& event) {
    pacing_.update_rtt(event.smoothed_rtt);
    const bool grows = event.round_start && !recovery_.covers(event.largest_acked_sent_time);
    set_window(window_bytes_ + (grows ? max_datagram_bytes_ : 0));
}

void Halving::on_loss(const LossEvent& event) {
    if (recovery_.covers(event.largest_lost_sent_time)) return;
    recovery_.begin(event.now);
    set_window(static_cast<std::uint64_t>(static_cast<double>(window_bytes_) * parameters_.decrease));
}

void Halving::on_persistent_congestion(Time) {
    set_window(0);
}

void Halving::on_ecn(const EcnEvent&) {}

void Halving::set_parameters(const ParameterValues& values) {
    parameters_ = with_values(table(), kName, parameters_, values);
}

ParameterValues Halving::parameters() const {
    return to_values(table(), parameters_);
}

ControllerSnapshot Halving::snapshot() const {
    return snapshot_in(ControllerMode::congestion_avoidance);
}

void Halving::set_window(std::uint64_t window_bytes) {
    window_bytes_ = std::max(window_bytes, kMinimumWindowDatagrams * max_datagram_bytes_);
    pacing_rate_ = pacing_.rate(1.25, static_cast<double>(window_bytes_));
}

ControllerSpecification specification() {
    return {kName, "One packet more per round, half on loss", "none: an example",
            specifications(table(), HalvingParameters()), construct<Halving>};
}

const Registration registered(specification);

}  // namespace

}  // namespace quicgym
