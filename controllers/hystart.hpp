// HyStart++, RFC 9406: the delay signal that ends slow start before loss does. For any slow start, of which
// it watches the first alone (4.3), as the caller sees to. L, the limit to what one ACK may add, is infinite,
// because the sender paces (4.3).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "controllers/controller.hpp"
#include "sim/base/time.hpp"

namespace quicgym {

// The parameter `slow_start` of a controller.
enum class SlowStart { standard, hystart_plus_plus };
inline const std::vector<std::string> kSlowStarts = {"standard", "hystart++"};
inline constexpr char kSlowStartDescription[] =
    "What may end the first slow start before a loss: nothing (standard), or a rise of the RTT (hystart++)";

// For members of `switching`: published policies of Switch were trained with it.
inline const ParameterValues kSwitchedSlowStart = {{"slow_start", {0.0}}};

class HyStart {
public:
    // With every ACK in slow start; `rtt` 0: no sample.
    void on_ack(Time rtt, bool round_start) {
        if (round_start) begin_round();
        if (rtt <= 0) return;
        current_round_min_rtt_ = std::min(current_round_min_rtt_, rtt);
        if (++samples_ < kRttSamples) return;
        if (conservative_) {
            if (current_round_min_rtt_ < baseline_min_rtt_) leave_conservative();  // it was no queue
        } else if (delay_has_risen()) {
            baseline_min_rtt_ = current_round_min_rtt_;
            conservative_ = true;
        }
    }

    // Conservative slow start (CSS) has lasted CSS_ROUNDS: congestion avoidance begins.
    bool done() const { return conservative_rounds_ >= kConservativeRounds; }
    // What an acknowledged byte adds to the window.
    double growth() const { return conservative_ ? kConservativeGrowth : 1.0; }

private:
    // RFC 9406 4.3.
    static constexpr Time kMinRttThreshold = 4 * kMillisecond;   // MIN_RTT_THRESH
    static constexpr Time kMaxRttThreshold = 16 * kMillisecond;  // MAX_RTT_THRESH
    static constexpr Time kMinRttDivisor = 8;                    // MIN_RTT_DIVISOR
    static constexpr int kRttSamples = 8;                        // N_RTT_SAMPLE
    static constexpr double kConservativeGrowth = 1.0 / 4.0;     // 1 / CSS_GROWTH_DIVISOR
    static constexpr int kConservativeRounds = 5;                // CSS_ROUNDS

    void begin_round() {
        last_round_min_rtt_ = current_round_min_rtt_;
        current_round_min_rtt_ = kNever;
        samples_ = 0;
        // The round in which CSS began counts, although it is a part of one.
        if (conservative_) ++conservative_rounds_;
    }

    bool delay_has_risen() const {
        if (last_round_min_rtt_ == kNever) return false;
        const Time threshold =
            std::clamp(last_round_min_rtt_ / kMinRttDivisor, kMinRttThreshold, kMaxRttThreshold);
        return current_round_min_rtt_ >= last_round_min_rtt_ + threshold;
    }

    void leave_conservative() {
        conservative_ = false;
        conservative_rounds_ = 0;
    }

    Time last_round_min_rtt_ = kNever;
    Time current_round_min_rtt_ = kNever;
    Time baseline_min_rtt_ = kNever;  // cssBaselineMinRtt
    int samples_ = 0;                 // rttSampleCount
    int conservative_rounds_ = 0;
    bool conservative_ = false;
};

}  // namespace quicgym
