// Careful Resume, RFC 9959, around CUBIC: a connection begins with half of the window that an earlier
// connection over the same path had, and retreats if the path does not carry it.
#include <algorithm>
#include <memory>
#include <utility>

#include "controllers/catalogue.hpp"
#include "controllers/controller.hpp"
#include "controllers/cubic.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"
#include "sim/base/value_pointer.hpp"

namespace quicgym {

namespace {

constexpr char kName[] = "cubic-resume";

struct CarefulResumeParameters {
    double saved_window_packets = 0.0;
    double saved_rtt_ms = 0.0;
};

const ParameterTable<CarefulResumeParameters>& table() {
    using P = CarefulResumeParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::saved_window_packets>(
            "saved_window_packets", 0.0, 1e6, "packets",
            "Window of an earlier connection over the path; 0: none is known, so this is CUBIC",
            "RFC 9959, saved_cwnd")
            .logarithmic(10.0),
        number<P, &P::saved_rtt_ms>("saved_rtt_ms", 0.0, 60000.0, "ms",
                                    "Minimum RTT of that connection; 0: it is not compared",
                                    "RFC 9959, saved_rtt")
            .logarithmic(1.0),
    };
    return rows;
}

// The phases of the RFC, and slow start up to the threshold that Safe Retreat leaves; `normal` is CUBIC
// alone.
enum class Phase { reconnaissance, unvalidated, validating, safe_retreat, below_threshold, normal };

class CarefulResume final : public Controller {
public:
    CarefulResume(const ParameterValues& values, std::uint64_t max_datagram_bytes)
        : Controller(max_datagram_bytes),
          inner_(std::make_unique<Cubic>(select(table(), values, false), max_datagram_bytes)),
          parameters_(with_values(table(), kName, CarefulResumeParameters(), select(table(), values, true))),
          beta_(inner_->parameters().at("beta").front()) {
        publish();
    }
    std::unique_ptr<Controller> clone() const override { return std::make_unique<CarefulResume>(*this); }

    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override {
        inner_->on_packet_sent(now, bytes, in_flight_bytes);
        // All that the jump lets go has left.
        if (phase_ == Phase::unvalidated && in_flight_bytes + max_datagram_bytes_ > window_bytes_)
            end_unvalidated(now, in_flight_bytes);
        publish();
    }
    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override {
        if (!retreats(event.now, event.largest_lost_sent_time)) inner_->on_loss(event);
        publish();
    }
    void on_ecn(const EcnEvent& event) override {
        const bool marked = event.newly_marked_packets > 0;
        if (!marked || !retreats(event.now, event.largest_acked_sent_time)) inner_->on_ecn(event);
        publish();
    }
    void on_persistent_congestion(Time now) override {
        phase_ = Phase::normal;
        inner_->on_persistent_congestion(now);
        publish();
    }
    void take_over(std::uint64_t window_bytes, bool slow_start) override {
        phase_ = Phase::normal;
        inner_->take_over(window_bytes, slow_start);
        publish();
    }
    // Everything is checked before anything changes, and errors list the parameters of both.
    void set_parameters(const ParameterValues& values) override {
        complete_parameters(find_controller(kName), values);
        parameters_ = with_values(table(), kName, parameters_, select(table(), values, true));
        inner_->set_parameters(select(table(), values, false));
        beta_ = inner_->parameters().at("beta").front();
        publish();
    }
    ParameterValues parameters() const override {
        ParameterValues values = inner_->parameters();
        values.merge(to_values(table(), parameters_));
        return values;
    }
    ControllerSnapshot snapshot() const override {
        ControllerSnapshot result = inner_->snapshot();
        result.pacing_rate = pacing_rate_;
        return result;
    }

private:
    void reconnoitre(const AckEvent& event);
    void end_unvalidated(Time now, std::uint64_t in_flight_bytes);
    bool retreats(Time now, Time sent_time);
    void publish() {
        window_bytes_ = inner_->window_bytes();
        pacing_rate_ = inner_->pacing_rate();
        // The jump is spread over a round trip.
        if (phase_ == Phase::unvalidated)
            pacing_rate_ = static_cast<double>(window_bytes_) * 1e9 / static_cast<double>(smoothed_rtt_);
    }

    const ValuePointer<Cubic> inner_;
    CarefulResumeParameters parameters_;
    double beta_;  // CUBIC's
    Phase phase_ = Phase::reconnaissance;
    Time min_rtt_ = kNever;
    Time smoothed_rtt_ = 0;
    Time jump_time_ = 0;
    Time last_unvalidated_ = 0;     // send time of the last packet of the phase before
    std::uint64_t pipe_bytes_ = 0;  // PipeSize: the capacity that acknowledgements have shown
};

void CarefulResume::on_ack(const AckEvent& event) {
    smoothed_rtt_ = event.smoothed_rtt;
    if (phase_ != Phase::reconnaissance && phase_ != Phase::below_threshold)
        pipe_bytes_ += event.newly_acked_bytes;
    // The window stands still where nothing has validated it, and while the path drains.
    if (phase_ == Phase::unvalidated || phase_ == Phase::safe_retreat) {
        inner_->on_ack_held(event, false);
    } else {
        inner_->on_ack(event);
    }
    const bool is_last = event.largest_acked_sent_time >= last_unvalidated_;
    switch (phase_) {
        case Phase::reconnaissance:
            reconnoitre(event);
            break;
        case Phase::unvalidated:
            // A packet of the jump is acknowledged, or a round trip has passed.
            if (event.largest_acked_sent_time > jump_time_ || event.now > jump_time_ + event.smoothed_rtt)
                end_unvalidated(event.now, event.in_flight_bytes);
            break;
        case Phase::validating:
            if (is_last) phase_ = Phase::normal;
            break;
        case Phase::safe_retreat:
            if (!is_last) break;
            phase_ = Phase::below_threshold;
            inner_->take_over(inner_->window_bytes(), true);
            [[fallthrough]];
        case Phase::below_threshold:
            if (static_cast<double>(inner_->window_bytes()) < beta_ * static_cast<double>(pipe_bytes_)) break;
            phase_ = Phase::normal;
            inner_->take_over(inner_->window_bytes(), false);
            break;
        case Phase::normal:
            break;
    }
    publish();
}

// All initial data is acknowledged, and the RTT is that of the saved path: half of the saved window. A window
// that has grown beyond it needs no jump.
void CarefulResume::reconnoitre(const AckEvent& event) {
    if (event.rtt > 0) min_rtt_ = std::min(min_rtt_, event.rtt);
    if (event.delivered_bytes < initial_window_bytes(max_datagram_bytes_) || event.app_limited) return;
    const double saved_rtt = parameters_.saved_rtt_ms * 1e6;
    const auto rtt = static_cast<double>(min_rtt_);
    const bool same_path = saved_rtt == 0.0 || (rtt > saved_rtt / 2.0 && rtt <= 10.0 * saved_rtt);
    const auto jump =
        static_cast<std::uint64_t>(parameters_.saved_window_packets / 2.0) * max_datagram_bytes_;
    if (min_rtt_ == kNever || !same_path || jump <= inner_->window_bytes()) {
        phase_ = Phase::normal;
        return;
    }
    phase_ = Phase::unvalidated;
    pipe_bytes_ = event.in_flight_bytes;
    jump_time_ = event.now;
    inner_->take_over(jump, true);
}

// What was not sent of the jump is not validated either.
void CarefulResume::end_unvalidated(Time now, std::uint64_t in_flight_bytes) {
    const std::uint64_t initial = initial_window_bytes(max_datagram_bytes_);
    const bool rate_limited = in_flight_bytes < initial || in_flight_bytes <= pipe_bytes_;
    phase_ = rate_limited ? Phase::normal : Phase::validating;
    last_unvalidated_ = now;
    inner_->take_over(rate_limited ? std::max(pipe_bytes_, initial) : in_flight_bytes, true);
}

// Safe Retreat: half of what the path has been seen to carry. Returns whether CUBIC is not to react.
bool CarefulResume::retreats(Time now, Time sent_time) {
    if (phase_ == Phase::reconnaissance || phase_ == Phase::below_threshold) phase_ = Phase::normal;
    if (phase_ == Phase::safe_retreat && sent_time > last_unvalidated_) phase_ = Phase::normal;
    if (phase_ == Phase::normal) return false;
    if (phase_ != Phase::safe_retreat) {
        phase_ = Phase::safe_retreat;
        last_unvalidated_ = now;
        inner_->take_over(pipe_bytes_ / 2, false);
    }
    return true;
}

ControllerSpecification careful_resume_specification() {
    ControllerSpecification underlying = cubic_specification();
    const auto added = specifications(table(), CarefulResumeParameters());
    underlying.parameters.insert(underlying.parameters.begin(), added.begin(), added.end());
    return {kName, "Careful Resume around CUBIC: a connection jumps to half the window of an earlier one",
            "RFC 9959; " + underlying.source, underlying.parameters, construct<CarefulResume>};
}

const Registration registered(careful_resume_specification);

}  // namespace

}  // namespace quicgym
