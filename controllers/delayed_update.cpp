#include "controllers/delayed_update.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "controllers/cubic.hpp"
#include "controllers/newreno.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"

namespace quicgym {

namespace {

const ParameterTable<DelayedUpdateParameters>& table() {
    using P = DelayedUpdateParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::period_ms>("period_ms", 1.0, 60000.0, "ms",
                                 "The congestion level is judged once in this time", "Cubic+ 3.2 and Table 1")
            .logarithmic(),
        number<P, &P::jitter_threshold_ms>(
            "jitter_threshold_ms", 0.0, 60000.0, "ms",
            "With less change of the mean RTT and U at most its threshold the network is not congested",
            "Cubic+ 3.4 and Table 1, threshold")
            .logarithmic(1.0),
        number<P, &P::utilisation_threshold>("utilisation_threshold", 0.0, 1.0, "",
                                             "With U above it and a rising mean RTT the network is congested",
                                             "Cubic+ equation 3"),
        number<P, &P::theta>("theta", 0.1, 1.0, "",
                             "What is left of the window at U = 1 with a rising mean RTT",
                             "Cubic+ 3.4 and Table 1"),
        number<P, &P::theta_ends_slow_start>(
            "theta_ends_slow_start", 0.0, 1.0, "",
            "1: slow start is over when theta cuts the window; 0: it continues", "Cubic+ 3.4 leaves it open"),
        number<P, &P::min_rtt_tolerance>(
            "min_rtt_tolerance", 0.0, 1.0, "",
            "An RTT equals the minimum when it is above it by at most this share of it",
            "Cubic+ equation 1 leaves it open")
            .logarithmic(0.001),
        number<P, &P::min_rtt_tolerance_packets>(
            "min_rtt_tolerance_packets", 0.0, 1000.0, "packets",
            "Or by the time of so many packets at the highest delivery rate, whichever is longer",
            "Cubic+ equation 1 leaves it open")
            .logarithmic(0.1),
        number<P, &P::hold_freezes_epoch>(
            "hold_freezes_epoch", 0.0, 1.0, "",
            "While the window is held, 1: CUBIC's epoch stands still; 0: its time runs on. NewReno has no epoch",
            "1: RFC 9438 5.8; 0: Cubic+ 3.4, which keeps the window and names nothing else"),
    };
    return rows;
}

}  // namespace

DelayedUpdate::DelayedUpdate(const char* name, std::unique_ptr<LossBasedController> controller,
                             const ParameterValues& values)
    : Controller(controller->max_datagram_bytes()), name_(name), controller_(std::move(controller)) {
    apply_parameters(with_values(table(), name_, DelayedUpdateParameters(), select(table(), values, true)));
    publish();
}

void DelayedUpdate::on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) {
    controller_->on_packet_sent(now, bytes, in_flight_bytes);
}

// Paper, figures 3 and 4. Without a clock, period and timer end with the first ACK after their time.
void DelayedUpdate::on_ack(const AckEvent& event) {
    suspended_ = suspended_ && event.now < resume_time_;
    observe(event);
    if (suspended_ || rtt_is_high_) {
        controller_->on_ack_held(event, parameters_.hold_freezes_epoch < 0.5);
    } else {
        controller_->on_ack(event);
    }
    publish();
}

void DelayedUpdate::observe(const AckEvent& event) {
    if (event.sample.delivery_rate > highest_delivery_rate_) {
        highest_delivery_rate_ = event.sample.delivery_rate;
        serialisation_time_ =
            static_cast<Time>(static_cast<double>(max_datagram_bytes_) * 1e9 / highest_delivery_rate_);
    }
    if (event.rtt <= 0) return;
    if (period_start_ == kNever) begin_period(event.now);
    max_rtt_ = std::max(max_rtt_, event.rtt);
    rtt_sum_ += event.rtt;
    ++samples_;
    uncongested_samples_ += event.rtt <= uncongested_rtt(event.min_rtt) ? 1 : 0;
    if (event.now - period_start_ >= period_) end_period(event);
}

// Section 3.4, with equations 1 to 4.
void DelayedUpdate::end_period(const AckEvent& event) {
    const Time mean_rtt = rtt_sum_ / samples_;
    const double utilisation =
        1.0 - static_cast<double>(uncongested_samples_) / static_cast<double>(samples_);
    // Equation 2 needs two periods.
    if (last_mean_rtt_ != 0) {
        const Time jitter = mean_rtt - last_mean_rtt_;
        const bool fully_used = uncongested_samples_ == 0;  // U = 1
        const bool used = fully_used || utilisation > parameters_.utilisation_threshold;
        if (used && jitter > 0) {
            suspended_ = true;
            const double share = 1.0 - event.random->uniform();  // equation 4: in (0, 1]
            resume_time_ = event.now + static_cast<Time>(share * static_cast<double>(event.min_rtt));
            if (fully_used) {
                controller_->scale_window(parameters_.theta, is_on(parameters_.theta_ends_slow_start));
            }
        } else if (!used && std::abs(jitter) < jitter_threshold_) {
            suspended_ = false;
        }
    }
    // A mean that equals the minimum is low, however little the RTT has varied so far.
    const Time middle = event.min_rtt + (max_rtt_ - event.min_rtt) / 2;
    rtt_is_high_ = mean_rtt > std::max(middle, uncongested_rtt(event.min_rtt));
    last_mean_rtt_ = mean_rtt;
    begin_period(event.now);
}

// The highest RTT that counts as equal to the minimum.
Time DelayedUpdate::uncongested_rtt(Time min_rtt) const {
    const double share = static_cast<double>(min_rtt) * parameters_.min_rtt_tolerance;
    const double packets = static_cast<double>(serialisation_time_) * parameters_.min_rtt_tolerance_packets;
    return min_rtt + static_cast<Time>(std::max(share, packets));
}

void DelayedUpdate::begin_period(Time now) {
    period_start_ = now;
    rtt_sum_ = samples_ = uncongested_samples_ = 0;
}

// Section 3.3: after a loss the mechanism resets its variables and begins to watch anew.
void DelayedUpdate::start_over(Time now) {
    suspended_ = rtt_is_high_ = false;
    last_mean_rtt_ = 0;
    begin_period(now);
    publish();
}

void DelayedUpdate::on_loss(const LossEvent& event) {
    controller_->on_loss(event);
    start_over(event.now);
}

void DelayedUpdate::on_ecn(const EcnEvent& event) {
    controller_->on_ecn(event);
    if (event.newly_marked_packets > 0) start_over(event.now);
}

void DelayedUpdate::on_persistent_congestion(Time now) {
    controller_->on_persistent_congestion(now);
    start_over(now);
}

void DelayedUpdate::on_spurious_loss(Time now) {
    controller_->on_spurious_loss(now);
    publish();
}

void DelayedUpdate::apply_parameters(const DelayedUpdateParameters& parameters) {
    parameters_ = parameters;
    period_ = static_cast<Time>(parameters.period_ms * 1e6);
    jitter_threshold_ = static_cast<Time>(parameters.jitter_threshold_ms * 1e6);
}

void DelayedUpdate::publish() {
    window_bytes_ = controller_->window_bytes();
    pacing_rate_ = controller_->pacing_rate();
}

// Everything is checked before anything changes, and errors list the parameters of both controllers.
void DelayedUpdate::set_parameters(const ParameterValues& values) {
    complete_parameters(find_controller(name_), values);
    apply_parameters(with_values(table(), name_, parameters_, select(table(), values, true)));
    controller_->set_parameters(select(table(), values, false));
    publish();
}

ParameterValues DelayedUpdate::parameters() const {
    ParameterValues values = controller_->parameters();
    values.merge(to_values(table(), parameters_));
    return values;
}

ControllerSnapshot DelayedUpdate::snapshot() const {
    return controller_->snapshot();
}

namespace {

// The catalogue keeps plain function pointers, so the name is an argument of the template.
template <typename Underlying, const char* Name>
ControllerSpecification around(ControllerSpecification underlying) {
    const auto added = specifications(table(), DelayedUpdateParameters());
    underlying.parameters.insert(underlying.parameters.begin(), added.begin(), added.end());
    return {
        Name,
        "The delayed window update on top of " + underlying.name +
            ": it holds growth while a queue builds up",
        "TCP delayed window update mechanism, section 3; " + underlying.source, underlying.parameters,
        [](const ParameterValues& values, std::uint64_t max_datagram_bytes) -> std::unique_ptr<Controller> {
            auto controller =
                std::make_unique<Underlying>(select(table(), values, false), max_datagram_bytes);
            return std::make_unique<DelayedUpdate>(Name, std::move(controller), values);
        }};
}

constexpr char kCubicPlus[] = "cubic+";
constexpr char kNewRenoPlus[] = "newreno+";

ControllerSpecification cubic_plus_specification() {
    return around<Cubic, kCubicPlus>(cubic_specification());
}

ControllerSpecification newreno_plus_specification() {
    return around<NewReno, kNewRenoPlus>(newreno_specification());
}

const Registration registered[] = {
    {newreno_plus_specification, {.place = 100, .baseline_place = 20}},
    {cubic_plus_specification, {.place = 110, .baseline_place = 40}},
};

}  // namespace

}  // namespace quicgym
