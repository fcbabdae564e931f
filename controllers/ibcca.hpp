// IBCCA: BBR whose ProbeRTT follows congestion. Zuo et al., "Performance Study of Improved BBR
// Congestion Control Algorithm using QUIC in Wireless LAN", section III.B ("the paper" below).
#pragma once

#include <array>
#include <vector>

#include "controllers/bbr.hpp"
#include "controllers/controller.hpp"

namespace quicgym {

struct IbccaParameters {
    double test_rounds = 1.0;
    double derate_tests = 3.0;
    double first_extension_ms = 1.0;
    double restart_after_s = 10.0;
    double expired_rtprop_follows = 0.0;  // 0 or 1
    double rise_restarts_cycle = 0.0;     // 0 or 1
    double blocked_by_window = 0.0;       // 0 or 1
    std::vector<double> gain_cycle_without_rise = BbrParameters().gain_cycle;
};

// BBR with its own answer to when ProbeRTT begins and how long it lasts. Everything else is BBR's.
class Ibcca final : public Bbr {
public:
    Ibcca(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Ibcca>(*this); }

    void on_ack(const AckEvent& event) override;
    void on_ack_standing_by(const AckEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;

protected:
    const std::vector<double>& followed_gain_cycle() const override {
        return follows_cycle_without_rise_ ? parameters_.gain_cycle_without_rise : gain_cycle();
    }

private:
    static constexpr std::size_t kMostTests = 16;

    bool finish_test(const AckEvent& event);
    std::uint64_t count_blocked(const AckEvent& event);
    void choose_gain_cycle(Time now, bool in_probe_bw, bool tested);
    void follow_cycle_without_rise(bool follows);
    Time derate() const;
    void extend_probe_rtt(Time now, std::uint64_t blocked);

    IbccaParameters parameters_;
    std::array<Time, kMostTests + 1> delays_{};  // of the tests, the latest first
    std::size_t tests_ = 0;                      // how many of them are filled
    std::uint64_t rounds_in_test_ = 0;
    Time test_minimum_ = kNever;
    bool follows_cycle_without_rise_ = false;
    double extension_ms_ = 0.0;         // the paper's tin
    std::uint64_t blocked_before_ = 0;  // events before ProbeBW was last entered

    // Blocked by the congestion window, outside of ProbeRTT.
    std::uint64_t window_events_ = 0;
    std::uint64_t window_in_force_ = 0;  // since the last ACK
    bool window_is_full_ = false;        // has been, in this packet-timed round
    bool window_was_full_ = false;       // in the round before
};

}  // namespace quicgym
