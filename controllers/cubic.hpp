// CUBIC, RFC 9438, with HyStart++, RFC 9406.
#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include "controllers/catalogue.hpp"
#include "controllers/controller.hpp"
#include "controllers/slow_start.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

struct CubicParameters {
    double c = 0.4;
    double beta = 0.7;
    double fast_convergence = 1.0;  // 0 or 1
    double slow_start = static_cast<double>(SlowStart::hystart_plus_plus);
    double pacing_gain = 1.25;
    double slow_start_pacing_gain = 2.0;
};

class Cubic final : public LossBasedController {
public:
    Cubic(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Cubic>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_ack_held(const AckEvent& event, bool time_goes_on) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_spurious_loss(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;
    void scale_window(double factor, bool ends_slow_start) override;
    void take_over(std::uint64_t window_bytes, bool slow_start) override;

    // In whole packets, as Linux has them.
    std::uint64_t window_packets() const { return static_cast<std::uint64_t>(window_); }
    bool is_above_threshold() const { return std::floor(window_) > std::floor(slow_start_threshold_); }
    // Sets the window like a write to Linux's snd_cwnd from outside: threshold, epoch and plateau stay.
    void write_window(std::uint64_t packets);

private:
    // The state that a spurious loss restores. RFC 9438 4.9.2 names all of it but the last three.
    struct Undo {
        double window;
        double cwnd_prior;
        double slow_start_threshold;
        double w_max;
        double k_seconds;
        Time epoch_start;
        double w_est;
        double epoch_c;
        double epoch_alpha;
        bool has_maximum;
    };

    bool in_slow_start() const { return window_ < slow_start_threshold_; }
    double cubic_window(double seconds) const;
    void slow_start(const AckEvent& event, double acked);
    void congestion_avoidance(const AckEvent& event, double acked);
    void begin_epoch(Time now);
    bool congestion_event(Time now, Time sent_time);
    void publish();

    CubicParameters parameters_;
    const double segments_per_byte_;

    // Windows in segments of the maximum datagram size, named as in RFC 9438 4.1.2.
    double window_;
    double slow_start_threshold_ = std::numeric_limits<double>::infinity();
    double w_max_ = 0.0;        // 0: undefined, no loss yet or a timeout since
    bool has_maximum_ = false;  // whether w_max_ is from a loss; an epoch that no loss began sets it as well
    double w_est_ = 0.0;
    double cwnd_prior_ = 0.0;
    double k_seconds_ = 0.0;
    double epoch_c_ = 0.0;      // an epoch keeps the C that its K was computed with
    double epoch_alpha_ = 0.0;  // and RFC 9438 4.3, alpha_cubic, of the beta that began it
    Time epoch_start_ = kNever;
    Time last_ack_time_ = 0;
    bool was_app_limited_ = false;
    bool was_written_ = false;  // the window no longer follows from the epoch
    std::optional<Undo> undo_;  // of the latest reduction, if a loss made it
    RecoveryPeriod recovery_;
    WindowPacing pacing_;
    SlowStartExit slow_start_exit_;
};

ControllerSpecification cubic_specification();

}  // namespace quicgym
