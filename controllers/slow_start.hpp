// What ends slow start before loss does: the parameter `slow_start` of loss-based controllers.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "controllers/controller.hpp"
#include "sim/base/time.hpp"

namespace quicgym {

enum class SlowStart { standard, hystart_plus_plus, hystart_linux, search, rapid_start };
inline const std::vector<std::string> kSlowStarts = {"standard", "hystart++", "hystart-linux", "search",
                                                     "rapid-start"};
// Whether this value of the parameter `slow_start` is that choice.
inline bool is_slow_start(double parameter, SlowStart choice) {
    return static_cast<SlowStart>(static_cast<int>(parameter + 0.5)) == choice;
}
inline constexpr char kSlowStartDescription[] =
    "What ends slow start before a loss: nothing (standard), a rise of the RTT (hystart++), that or a long train "
    "of ACKs (hystart-linux), less delivered than was sent a round trip before (search). rapid-start triples the "
    "window in a round without a queue";
inline constexpr char kSlowStartSource[] =
    "RFC 9438 4.10, RFC 9406; Linux tcp_cubic.c; draft-chung-ccwg-search-09; draft-kazuho-ccwg-rapid-start";

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

// SEARCH, draft-chung-ccwg-search-09: slow start ends when less is delivered than was sent a round trip
// before. Both are counted in bins of time. Without the draft's drain phase: the window becomes the
// threshold.
class Search {
public:
    // With every ACK in slow start.
    void on_ack(const AckEvent& event) {
        lost_bytes_ += event.newly_lost_bytes;
        const std::uint64_t sent = event.delivered_bytes + event.in_flight_bytes + lost_bytes_;
        if (event.rtt <= 0) return;
        if (bin_ == 0) {
            bin_ = std::max<Time>(event.rtt * kWindowPercent / 100 / kBins, 1);
            bin_end_ = event.now + bin_;
            last_ = 0;
            delivered_[0] = event.delivered_bytes;
            sent_[0] = sent;
            return;
        }
        if (event.now <= bin_end_) return;
        const auto passed = (event.now - bin_end_) / bin_ + 1;
        if (passed > kBins) {  // too old to say anything
            const std::uint64_t lost = lost_bytes_;
            *this = {};
            lost_bytes_ = lost;
            return;
        }
        for (Time skipped = 1; skipped < passed; ++skipped) enter(delivered(last_), this->sent(last_));
        enter(event.delivered_bytes, sent);
        bin_end_ += passed * bin_;
        found_ = evaluate(event.rtt);
    }

    bool found() const { return found_; }

private:
    static constexpr Time kWindowPercent = 350;  // WINDOW_SIZE_FACTOR, of the first RTT
    static constexpr Time kBins = 10;            // W, in a window
    static constexpr Time kExtraBins = 15;       // EXTRA_BINS, for RTTs that have grown
    static constexpr double kThreshold = 0.26;   // THRESH

    std::uint64_t delivered(Time index) const {
        return delivered_[static_cast<std::size_t>(index % (kBins + 1))];
    }
    std::uint64_t sent(Time index) const {
        return sent_[static_cast<std::size_t>(index % (kBins + 1 + kExtraBins))];
    }
    void enter(std::uint64_t delivered, std::uint64_t sent) {
        ++last_;
        delivered_[static_cast<std::size_t>(last_ % (kBins + 1))] = delivered;
        sent_[static_cast<std::size_t>(last_ % (kBins + 1 + kExtraBins))] = sent;
    }

    bool evaluate(Time rtt) const {
        const Time before = last_ - rtt / bin_;
        if (before <= kBins || last_ - before >= kExtraBins) return false;
        const auto window = [this](Time end) { return static_cast<double>(sent(end) - sent(end - kBins)); };
        const double share = static_cast<double>(rtt % bin_) / static_cast<double>(bin_);  // between two bins
        const double was_sent = window(before - 1) * share + window(before) * (1.0 - share);
        const auto now_delivered = static_cast<double>(delivered(last_) - delivered(last_ - kBins));
        return was_sent > 0.0 && was_sent - now_delivered >= kThreshold * was_sent;
    }

    // Totals at the end of each bin.
    std::array<std::uint64_t, kBins + 1> delivered_{};
    std::array<std::uint64_t, kBins + 1 + kExtraBins> sent_{};
    std::uint64_t lost_bytes_ = 0;
    Time bin_ = 0;  // 0: no RTT yet
    Time bin_end_ = 0;
    Time last_ = 0;  // index of the last bin that has ended
    bool found_ = false;
};

// Rapid Start, draft-kazuho-ccwg-rapid-start: three times the window in a round without a queue; what it has
// then, after a loss, follows from what was delivered and lost in one recovery period.
class RapidStart {
public:
    // What an acknowledged byte adds to the window in slow start.
    double growth() const { return queue_ ? 1.0 : 2.0; }

    void on_ack(const AckEvent& event) {
        if (event.round_start) {
            queue_ = round_min_rtt_ != kNever && round_min_rtt_ > longest_without_queue(event.min_rtt);
            round_min_rtt_ = kNever;
        }
        if (event.rtt > 0) round_min_rtt_ = std::min(round_min_rtt_, event.rtt);
    }

    // Slow start has ended by a loss or a mark. Returns what is left of the window.
    double begin(double window, double beta) {
        keep_ = kK * (1.0 - beta);
        floor_ = window * (beta + keep_ - keep_ / 3.0 - 2.0 / 3.0 * (beta + keep_));
        beta_ = beta;
        return window * (beta + keep_);  // silence_factor
    }
    bool converging() const { return beta_ > 0.0; }
    // In the same unit as the window.
    double converge(double window, double acked, double lost) const {
        return std::max(window - keep_ * acked - (beta_ + keep_) * lost, floor_);
    }
    void end() { beta_ = 0.0; }

private:
    static constexpr double kK = 11.0 / 18.0;
    static constexpr Time kJitter = 4 * kMillisecond;

    static Time longest_without_queue(Time min_rtt) {
        return std::min(min_rtt + kJitter, min_rtt + min_rtt / 10);
    }

    Time round_min_rtt_ = kNever;
    double keep_ = 0.0;  // ack_factor
    double beta_ = 0.0;  // 0: not in the recovery period
    double floor_ = 0.0;
    bool queue_ = false;
};

// All ways out of slow start; `parameter` says which one is in force, and `first` that none has been taken
// yet.
class SlowStartExit {
public:
    // What an acknowledged byte adds to the window.
    double growth(double parameter, bool first) const {
        if (!first) return 1.0;
        if (kind(parameter) == SlowStart::rapid_start) return rapid_.growth();
        return kind(parameter) == SlowStart::hystart_plus_plus ? plus_plus_.growth() : 1.0;
    }

    // With every ACK in slow start. Returns whether the window is to be the threshold.
    bool on_ack(double parameter, bool first, const AckEvent& event, double window_packets,
                double pacing_rate) {
        switch (kind(parameter)) {
            case SlowStart::standard:
                return false;
            case SlowStart::hystart_plus_plus:
                if (!first) return false;  // RFC 9406 4.3: for the first slow start only
                plus_plus_.on_ack(event.rtt, event.round_start);
                return plus_plus_.done();
            case SlowStart::hystart_linux:
                linux_.on_ack(event, window_packets, pacing_rate);
                return linux_.found();
            case SlowStart::search:
                search_.on_ack(event);
                return search_.found();
            case SlowStart::rapid_start:
                rapid_.on_ack(event);
                return false;
        }
        return false;
    }

    // Slow start begins anew: after persistent congestion, or with the window of another controller.
    void restart() {
        plus_plus_ = {};
        linux_ = {};
        search_ = {};
        rapid_ = {};
    }

    // At a congestion event: returns what is left of the window, of which `beta` is usual.
    double reduced(double parameter, bool first, double window, double beta) {
        return kind(parameter) == SlowStart::rapid_start && first ? rapid_.begin(window, beta)
                                                                  : window * beta;
    }
    // Whether the window goes on to shrink until the recovery period ends.
    bool converging() const { return rapid_.converging(); }
    double converge(double window, double acked, double lost) const {
        return rapid_.converge(window, acked, lost);
    }
    void end_convergence() { rapid_.end(); }

private:
    static SlowStart kind(double parameter) {
        return static_cast<SlowStart>(static_cast<int>(parameter + 0.5));
    }

    HyStartPlusPlus plus_plus_;
    LinuxHyStart linux_;
    Search search_;
    RapidStart rapid_;
};

}  // namespace quicgym
