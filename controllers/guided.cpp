// Slow start, then a window that somebody outside sets, such as an agent; the pacing rate follows the window.
#include <algorithm>

#include "controllers/controller.hpp"
#include "controllers/external.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

namespace {

// Whether a path is full: by delay, by a loss that is more than random, or by a delivery rate that has
// stopped growing (BBR draft-00 4.3.2.2). A sender in slow start that a few random losses stop knows nothing
// of the path.
class FullPath {
public:
    // Returns whether it is, as far as is known with this ACK.
    bool on_ack(const AckEvent& event, std::uint64_t window_bytes);
    double highest_rate() const { return highest_rate_; }  // of all delivery rates, bytes per second

private:
    std::uint64_t round_window_bytes_ = 0;  // when the round began
    int samples_ = 0;                       // of the RTT in this round
    int delayed_in_a_row_ = 0;              // of all samples, the latest
    double round_rate_ = 0.0;               // highest of this round, bytes per second
    std::uint64_t lost_bytes_ = 0;          // in this round
    bool app_limited_ = false;              // a rate that the application limits need not grow
    double highest_rate_ = 0.0;
    double full_rate_ = 0.0;  // the rate when it last grew by a quarter
    int rounds_without_growth_ = 0;
};

struct GuidedParameters {
    double window_bytes = 0.0;
};

// After slow start it reacts to nothing by itself: not to loss, not to ECN, not to persistent congestion.
class Guided final : public Controller {
public:
    Guided(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Guided>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent&) override {}
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;

private:
    void take_window();
    void update_pacing_rate();

    GuidedParameters parameters_;
    WindowPacing pacing_;
    FullPath full_path_;
    bool slow_start_ = true;
    Time min_rtt_ = 0;
};

constexpr double kFullRttRatio = 1.5;
constexpr int kEnoughSamples = 8;  // as RFC 9406 4.2, N_RTT_SAMPLE
constexpr double kFullLossRate = 0.1;
constexpr double kFullGrowth = 1.25;  // BBR draft-00 4.3.2.2, like the next
constexpr int kFullRounds = 3;
constexpr double kFullWindowGain = 1.25;  // of the BDP: ACKs are delayed, and payload is not all that is sent

const ParameterTable<GuidedParameters>& table() {
    using P = GuidedParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::window_bytes>("window_bytes", 0.0, kExternalLargestWindow, "bytes",
                                    "The window, two datagrams at least, and the end of slow start; "
                                    "0: the window is what slow start has made it",
                                    "whoever sets it; RFC 9002 7.2"),
    };
    return rows;
}

bool FullPath::on_ack(const AckEvent& event, std::uint64_t window_bytes) {
    if (round_window_bytes_ == 0) round_window_bytes_ = window_bytes;
    bool full = false;
    if (event.round_start && samples_ > 0) {
        if (round_rate_ >= kFullGrowth * full_rate_) {
            full_rate_ = round_rate_;
            rounds_without_growth_ = 0;
        } else if (!app_limited_) {
            ++rounds_without_growth_;
        }
        full = delayed_in_a_row_ >= samples_ || rounds_without_growth_ >= kFullRounds;
        round_window_bytes_ = window_bytes;
        samples_ = 0;
        round_rate_ = 0.0;
        lost_bytes_ = 0;
        app_limited_ = false;
    }
    if (event.rtt > 0) {
        ++samples_;
        const bool delayed =
            static_cast<double>(event.rtt) > kFullRttRatio * static_cast<double>(event.min_rtt);
        delayed_in_a_row_ = delayed ? delayed_in_a_row_ + 1 : 0;
    }
    round_rate_ = std::max(round_rate_, event.sample.delivery_rate);
    highest_rate_ = std::max(highest_rate_, round_rate_);
    lost_bytes_ += event.newly_lost_bytes;
    app_limited_ = app_limited_ || event.sample.app_limited;
    return full || delayed_in_a_row_ >= kEnoughSamples ||
           static_cast<double>(lost_bytes_) > kFullLossRate * static_cast<double>(round_window_bytes_);
}

Guided::Guided(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : Controller(max_datagram_bytes),
      parameters_(with_values(table(), "guided", GuidedParameters(), values)) {
    window_bytes_ = initial_window_bytes(max_datagram_bytes_);
    take_window();
}

void Guided::on_ack(const AckEvent& event) {
    min_rtt_ = event.min_rtt;
    pacing_.update_rtt(event.smoothed_rtt);
    if (slow_start_) {
        slow_start_ = !full_path_.on_ack(event, window_bytes_);
        if (!slow_start_) {
            // This ACK shows the path as it was an RTT ago, and the window has grown since.
            const double bdp = full_path_.highest_rate() * static_cast<double>(min_rtt_) * 1e-9;
            window_bytes_ = std::clamp(static_cast<std::uint64_t>(kFullWindowGain * bdp),
                                       kMinimumWindowDatagrams * max_datagram_bytes_, window_bytes_);
        } else if (!event.app_limited) {
            window_bytes_ += event.newly_acked_bytes;
        }
    }
    update_pacing_rate();
}

void Guided::on_persistent_congestion(Time) {
    slow_start_ = false;
    update_pacing_rate();
}

void Guided::on_ecn(const EcnEvent& event) {
    if (event.newly_marked_packets > 0) slow_start_ = false;
    update_pacing_rate();
}

void Guided::take_window() {
    if (parameters_.window_bytes > 0.0) {
        window_bytes_ = std::max(static_cast<std::uint64_t>(parameters_.window_bytes),
                                 kMinimumWindowDatagrams * max_datagram_bytes_);
        slow_start_ = false;
    }
    update_pacing_rate();
}

void Guided::update_pacing_rate() {
    pacing_rate_ =
        pacing_.rate(slow_start_ ? kSlowStartPacingGain : kPacingGain, static_cast<double>(window_bytes_));
}

void Guided::set_parameters(const ParameterValues& values) {
    parameters_ = with_values(table(), "guided", parameters_, values);
    take_window();
}

ParameterValues Guided::parameters() const {
    return to_values(table(), parameters_);
}

ControllerSnapshot Guided::snapshot() const {
    ControllerSnapshot result =
        snapshot_in(slow_start_ ? ControllerMode::slow_start : ControllerMode::congestion_avoidance);
    result.round_trip_estimate = min_rtt_;
    return result;
}

ControllerSpecification guided_specification() {
    return {"guided", "Slow start, then a window that is set from outside, as an agent does",
            "RFC 9002 7.3.1; mvfst-rl (Sivakumar et al., 2019) controls a sender so",
            specifications(table(), GuidedParameters()), construct<Guided>};
}

const Registration registered(guided_specification, {.place = 150, .steered = true});

}  // namespace

}  // namespace quicgym
