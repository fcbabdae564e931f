// PCC's monitor intervals (performance-oriented congestion control): what is sent at one rate, and what
// became of it. For controllers that try rates and move towards the one with the higher utility.
#pragma once

#include <algorithm>
#include <array>

#include "controllers/controller.hpp"

namespace quicgym {

inline constexpr double kBytesPerSecondPerMbps = 125'000.0;

// Equation 1 of Dong et al., "PCC Vivace: Online-Learning Congestion Control" (NSDI 2018).
struct VivaceUtility {
    double throughput_exponent = 0.9;
    double latency_coefficient = 900.0;
    double loss_coefficient = 11.35;

    double of(double rate_mbps, double rtt_gradient, double loss_rate) const;
};

// Measures the fate of the packets that were sent at one rate.
class MonitorInterval {
public:
    MonitorInterval() = default;
    explicit MonitorInterval(double rate) : rate_(rate) {}

    double rate() const { return rate_; }  // as planned, bytes per second
    bool begun() const { return begin_ != kNever; }
    bool covers(Time sent_time) const { return begun() && sent_time >= begin_ && sent_time < end_; }
    double samples() const { return samples_; }  // of the RTT, so far

    void begin(Time now) { begin_ = now; }
    Time age(Time now) const { return now - begin_; }
    void on_packet_sent(std::uint64_t bytes) { sent_bytes_ += static_cast<double>(bytes); }
    void on_packet_lost(std::uint64_t bytes) { lost_bytes_ += static_cast<double>(bytes); }
    void on_rtt(Time sent_time, Time rtt);
    void end(Time now) { end_ = now; }

    // Call these only after the interval has ended.
    double seconds() const;
    double sent_rate() const { return sent_bytes_ / seconds(); }  // bytes per second
    double sent_mbps() const { return sent_rate() / kBytesPerSecondPerMbps; }
    double sent_bytes() const { return sent_bytes_; }
    double lost_bytes() const { return lost_bytes_; }
    double loss_rate() const { return lost_bytes_ < sent_bytes_ ? lost_bytes_ / sent_bytes_ : 1.0; }
    double mean_rtt() const { return samples_ > 0.0 ? sum_rtt_ / samples_ : 0.0; }  // seconds
    // From a linear regression of the RTT over the send time: the slope d RTT / d T, and the root of the mean
    // square of what it leaves, in seconds.
    double rtt_gradient() const;
    double rtt_residual() const;

private:
    double rate_ = 0.0;
    Time begin_ = kNever;
    Time end_ = kNever;
    double sent_bytes_ = 0.0;
    double lost_bytes_ = 0.0;
    // Sums over the RTT samples, in seconds: send times from the begin, and RTTs.
    double samples_ = 0.0;
    double sum_time_ = 0.0;
    double sum_rtt_ = 0.0;
    double sum_time_time_ = 0.0;
    double sum_time_rtt_ = 0.0;
    double sum_rtt_rtt_ = 0.0;
};

// Sends intervals as planned and waits until all is known of them; a subclass decides then.
class MonitoringController : public Controller {
public:
    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override;
    void on_ack(const AckEvent& event) override;
    void on_packet_lost(const LostPacket& packet) override;
    void on_loss(const LossEvent&) override {}
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    ControllerSnapshot snapshot() const override;

protected:
    enum class Phase { starting, probing, moving };

    explicit MonitoringController(std::uint64_t max_datagram_bytes);

    // Whether an interval may end. If not, it continues.
    virtual bool is_long_enough(const MonitorInterval& interval, Time now) const = 0;
    // In pairs of intervals the rates are r * (1 + step) and r * (1 - step). Outside of probing there is one
    // interval, at the rate r.
    virtual double probing_step() const = 0;
    virtual std::size_t probing_pairs() const = 0;  // at most kMostPairs
    virtual double smallest_rate() const = 0;       // bytes per second
    // The window is this times rate * smoothed RTT, and the initial window.
    virtual double window_gain() const = 0;
    // Sets rate and phase by the intervals, all of which were sent at their rates.
    virtual void decide() = 0;

    std::size_t planned() const { return planned_; }  // how many intervals
    const MonitorInterval& interval(std::size_t index) const { return intervals_[index]; }
    double rate() const { return rate_; }
    void set_rate(double rate) { rate_ = std::max(rate, smallest_rate()); }
    double rtt_seconds() const;
    Time smoothed_rtt() const { return smoothed_rtt_; }
    Time min_rtt() const { return min_rtt_; }
    void update_rtt(const AckEvent& event);
    // Begins with this rate in force.
    void restart(double rate);
    void forget_intervals();
    void set_window();

    Phase phase_ = Phase::starting;

    static constexpr std::size_t kMostPairs = 4;

private:
    MonitorInterval* covering(Time sent_time);
    bool all_is_known(const AckEvent& event) const;
    bool all_used_their_rates() const;
    void plan(Random& random);

    double rate_;  // bytes per second
    Time smoothed_rtt_ = 0;
    Time min_rtt_ = 0;

    // The intervals on which the next decision waits, in the order in which they are sent.
    std::array<MonitorInterval, 2 * kMostPairs> intervals_;
    std::size_t planned_ = 0;  // how many
    std::size_t current_ = 0;  // the one being sent; `planned_`: none
    bool ending_ = false;      // with the next packet
    std::uint64_t packets_afterwards_ = 0;
    Time known_after_ = kNever;  // when a packet sent at this time is acknowledged, all is known
};

}  // namespace quicgym
