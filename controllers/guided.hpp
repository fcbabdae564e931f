// Slow start, then a window that somebody outside sets, such as an agent; the pacing rate follows the window.
#pragma once

#include "controllers/controller.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

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

}  // namespace quicgym
