// The TCP delayed window update mechanism (KSII Transactions on Internet and Information Systems
// 10:10, 2016; "the paper" below) around any loss-based controller: cubic+ and newreno+.
#pragma once

#include <memory>

#include "controllers/catalogue.hpp"
#include "controllers/controller.hpp"
#include "controllers/window_pacing.hpp"
#include "sim/base/value_pointer.hpp"

namespace quicgym {

struct DelayedUpdateParameters {
    double period_ms = 100.0;
    double jitter_threshold_ms = 30.0;
    double utilisation_threshold = 0.99;
    double theta = 0.9;
    double theta_ends_slow_start = 1.0;  // 0 or 1
    double min_rtt_tolerance = 0.01;
    double min_rtt_tolerance_packets = 1.0;
    double hold_freezes_epoch = 1.0;  // 0 or 1
};

// The underlying controller gets every event. While the window is to be held, its ACKs come by on_ack_held:
// whatever its algorithm is, it must not grow then.
class DelayedUpdate final : public Controller {
public:
    // `name` is the combination's; it must outlive the controller.
    DelayedUpdate(const char* name, std::unique_ptr<LossBasedController> controller,
                  const ParameterValues& values);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<DelayedUpdate>(*this); }

    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override;
    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_spurious_loss(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;

private:
    void observe(const AckEvent& event);
    void end_period(const AckEvent& event);
    void begin_period(Time now);
    void start_over(Time now);
    void apply_parameters(const DelayedUpdateParameters& parameters);
    Time uncongested_rtt(Time min_rtt) const;
    void publish();

    const char* const name_;
    const ValuePointer<LossBasedController> controller_;
    DelayedUpdateParameters parameters_;
    Time period_ = 0;
    Time jitter_threshold_ = 0;

    bool suspended_ = false;    // the paper's suspend_flag
    bool rtt_is_high_ = false;  // the paper's flag
    Time resume_time_ = 0;      // when the suspend timer expires
    Time max_rtt_ = 0;
    double highest_delivery_rate_ = 0.0;  // bytes per second
    Time serialisation_time_ = 0;         // of one packet at that rate

    // The current period.
    Time period_start_ = kNever;  // the first one begins with the first ACK
    Time rtt_sum_ = 0;
    std::int64_t samples_ = 0;
    std::int64_t uncongested_samples_ = 0;
    Time last_mean_rtt_ = 0;  // 0: there is none
};

}  // namespace quicgym
