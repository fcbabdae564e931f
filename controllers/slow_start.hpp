// Ways to end slow start before a loss does: the parameter `slow_start` of loss-based controllers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "controllers/controller.hpp"
#include "sim/base/time.hpp"

namespace quicgym {

enum class SlowStart { standard, hystart_plus_plus, hystart_linux };
inline const std::vector<std::string> kSlowStarts = {"standard", "hystart++", "hystart-linux"};
// The choice that this value of the parameter `slow_start` is.
inline SlowStart slow_start_of(double parameter) {
    return static_cast<SlowStart>(static_cast<int>(parameter + 0.5));
}
inline bool is_slow_start(double parameter, SlowStart choice) {
    return slow_start_of(parameter) == choice;
}
inline constexpr char kSlowStartDescription[] =
    "What ends slow start before a loss: nothing (standard), a rise of the RTT (hystart++), that or a long train "
    "of ACKs (hystart-linux)";
inline constexpr char kSlowStartSource[] = "RFC 9438 4.10, RFC 9406; Linux tcp_cubic.c";

// HyStart++, RFC 9406. L, the limit to what one ACK may add, is infinite, because the sender paces (4.3).
class HyStartPlusPlus {
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
    // How many bytes an acknowledged byte adds to the window.
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

// HyStart as Linux's CUBIC has it by default: the train of ACKs, and the delay. The window at which slow
// start ends is the threshold; there is no phase of slower growth.
class LinuxHyStart {
public:
    // With every ACK in slow start; `pacing_rate` in bytes per second.
    void on_ack(const AckEvent& event, double window_packets, double pacing_rate) {
        if (event.round_start || round_start_ == kNever) {
            round_start_ = last_train_ack_ = event.now;
            round_min_rtt_ = kNever;
            samples_ = 0;
        }
        if (event.rtt <= 0) return;
        min_rtt_ = std::min(min_rtt_, event.rtt);
        if (window_packets < kLowWindowPackets) return;
        found_ = found_ || train_is_long(event.now, pacing_rate) || delay_has_risen(event.rtt);
    }

    bool found() const { return found_; }

private:
    static constexpr double kLowWindowPackets = 16.0;          // hystart_low_window
    static constexpr Time kTrainGap = 2 * kMillisecond;        // hystart_ack_delta_us
    static constexpr double kAggregateBytes = 4.0 * 65'536.0;  // hystart_ack_delay(), of GSO_MAX_SIZE
    static constexpr Time kLongestAggregate = kMillisecond;    // the same
    static constexpr int kRttSamples = 8;                      // HYSTART_MIN_SAMPLES
    static constexpr Time kLeastDelay = 4 * kMillisecond;      // HYSTART_DELAY_MIN
    static constexpr Time kLargestDelay = 16 * kMillisecond;   // HYSTART_DELAY_MAX
    static constexpr Time kDelayDivisor = 8;

    // ACKs in close succession for longer than the lowest RTT: the path is full. The kernel halves this time
    // for a sender that does not pace. Ours does, and its packets of a round leave in half an RTT.
    bool train_is_long(Time now, double pacing_rate) {
        if (now - last_train_ack_ > kTrainGap) return false;
        last_train_ack_ = now;
        const auto aggregate = static_cast<Time>(kAggregateBytes * 1e9 / pacing_rate);
        return now - round_start_ > min_rtt_ + std::min(aggregate, kLongestAggregate);
    }

    bool delay_has_risen(Time rtt) {
        round_min_rtt_ = std::min(round_min_rtt_, rtt);
        if (samples_ < kRttSamples) {
            ++samples_;
            return false;
        }
        return round_min_rtt_ > min_rtt_ + std::clamp(min_rtt_ / kDelayDivisor, kLeastDelay, kLargestDelay);
    }

    Time round_start_ = kNever;
    Time last_train_ack_ = 0;
    Time min_rtt_ = kNever;
    Time round_min_rtt_ = kNever;
    int samples_ = 0;
    bool found_ = false;
};

// All ways out of slow start; `parameter` says which one is in force, and `first` that none has been taken
// yet.
class SlowStartExit {
public:
    // How many bytes an acknowledged byte adds to the window.
    double growth(double parameter, bool first) const {
        return first && slow_start_of(parameter) == SlowStart::hystart_plus_plus ? plus_plus_.growth() : 1.0;
    }

    // With every ACK in slow start. Returns whether the window is to be the threshold.
    bool on_ack(double parameter, bool first, const AckEvent& event, double window_packets,
                double pacing_rate) {
        switch (slow_start_of(parameter)) {
            case SlowStart::standard:
                return false;
            case SlowStart::hystart_plus_plus:
                if (!first) return false;  // RFC 9406 4.3: for the first slow start only
                plus_plus_.on_ack(event.rtt, event.round_start);
                return plus_plus_.done();
            case SlowStart::hystart_linux:
                linux_.on_ack(event, window_packets, pacing_rate);
                return linux_.found();
        }
        return false;
    }

    // Slow start begins anew: after persistent congestion, or with the window of another controller.
    void restart() {
        plus_plus_ = {};
        linux_ = {};
    }

private:
    HyStartPlusPlus plus_plus_;
    LinuxHyStart linux_;
};

}  // namespace quicgym
