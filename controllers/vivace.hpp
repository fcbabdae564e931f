// PCC Vivace with its latency utility, Dong et al., "PCC Vivace: Online-Learning Congestion Control"
// (NSDI 2018; "the paper" below), for QUIC.
#pragma once

#include <array>

#include "controllers/controller.hpp"

namespace quicgym {

struct VivaceParameters {
    double throughput_exponent = 0.9;
    double latency_coefficient = 900.0;
    double loss_coefficient = 11.35;
    double probing_step = 0.05;
    double probing_pairs = 2.0;
    double rate_change_factor = 1.0;
    double first_boundary = 0.05;
    double boundary_step = 0.1;
    double gradient_tolerance = 0.01;
    double swing_buffer = 2.0;
    double smallest_interval_packets = 10.0;
    double window_gain = 2.0;
};

// What became of the packets that were sent at one rate, the paper's monitor interval.
class MonitorInterval {
public:
    MonitorInterval() = default;
    explicit MonitorInterval(double rate) : rate_(rate) {}

    double rate() const { return rate_; }  // as planned, bytes per second
    bool begun() const { return begin_ != kNever; }
    bool covers(Time sent_time) const { return begun() && sent_time >= begin_ && sent_time < end_; }

    void begin(Time now) { begin_ = now; }
    Time age(Time now) const { return now - begin_; }
    void on_packet_sent(std::uint64_t bytes) { sent_bytes_ += static_cast<double>(bytes); }
    void on_packet_lost(std::uint64_t bytes) { lost_bytes_ += static_cast<double>(bytes); }
    void on_rtt(Time sent_time, Time rtt);
    void end(Time now) { end_ = now; }

    // Of an interval that has ended.
    double sent_rate() const;  // bytes per second
    double loss_rate() const { return lost_bytes_ < sent_bytes_ ? lost_bytes_ / sent_bytes_ : 1.0; }
    double rtt_gradient() const;  // d RTT / d T, from a linear regression; section 4.3

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
};

class Vivace final : public Controller {
public:
    Vivace(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Vivace>(*this); }

    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override;
    void on_ack(const AckEvent& event) override;
    void on_packet_lost(const LostPacket& packet) override;
    void on_loss(const LossEvent&) override {}
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;
    void on_ack_standing_by(const AckEvent& event) override;
    std::uint64_t window_to_hand_over() const override;
    void take_over(std::uint64_t window_bytes, bool slow_start) override;

private:
    static constexpr std::size_t kMostPairs = 4;
    static constexpr std::uint64_t kPacketThreshold = 3;  // RFC 9002 6.1.1

    Time smallest_duration(const MonitorInterval& interval) const;
    MonitorInterval* covering(Time sent_time);
    bool all_is_known(const AckEvent& event) const;
    double utility(const MonitorInterval& interval) const;

    void forget_intervals();
    void plan(Random& random);
    void decide();
    void decide_starting();
    void decide_probing();
    void change_rate(double gradient);
    void set_rate(double rate);
    double rtt_seconds() const;
    void set_window();

    VivaceParameters parameters_;
    bool starting_ = true;
    double rate_;  // bytes per second, the paper's r
    Time smoothed_rtt_ = 0;
    double last_utility_ = 0.0;  // of the starting phase

    // The intervals on which the next decision waits, in the order in which they are sent.
    std::array<MonitorInterval, 2 * kMostPairs> intervals_;
    std::size_t planned_ = 0;  // how many
    std::size_t current_ = 0;  // the one being sent; `planned_`: none
    bool ending_ = false;      // with the next packet
    std::uint64_t packets_afterwards_ = 0;
    Time known_after_ = kNever;  // when a packet sent at this time is acknowledged, all is known

    double direction_ = 0.0;          // 1 up, -1 down, 0 none yet
    double consecutive_ = 0.0;        // the paper's tau
    double swings_ = 0.0;             // left in the swing buffer
    double boundary_exceeded_ = 0.0;  // the paper's k
};

}  // namespace quicgym
