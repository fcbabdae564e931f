#include <algorithm>

#include "controllers/cubic.hpp"
#include "controllers/parameters.hpp"
#include "sim/policy/authors/agent.hpp"
#include "sim/policy/authors/measurements.hpp"

namespace quicgym::policy {

namespace {

// setup.sh: the largest send buffer. Beyond it a larger window sends nothing more.
constexpr std::uint64_t kSendBufferBytes = 4'194'304;
constexpr Time kPoll = 2 * kMillisecond;  // orca-server-mahimahi.cc: between questions without an RTT sample

struct OrcaParameters {
    double period_ms = 30.0;
    double slow_start = static_cast<double>(SlowStart::hystart_linux);  // as Linux has it
};

const ParameterTable<OrcaParameters>& table() {
    using P = OrcaParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::period_ms>("period_ms", 2.0, 1000.0, "ms",
                                 "Time between two decisions: 20 ms and what server and agent wait for "
                                 "each other",
                                 "Orca, orca-server-mahimahi.cc and envwrapper.py"),
        choice<P, &P::slow_start>("slow_start", kSlowStarts, kSlowStartDescription, kSlowStartSource),
    };
    return rows;
}

// CUBIC, into whose window an agent writes; so its actions compound.
class Orca final : public AgentController {
public:
    Orca(std::shared_ptr<const Network> network, const ParameterValues& values,
         std::uint64_t max_datagram_bytes)
        : AgentController(std::move(network), max_datagram_bytes),
          parameters_(with_values(table(), "orca", OrcaParameters(), values)),
          cubic_({{"slow_start", {parameters_.slow_start}}}, max_datagram_bytes) {
        publish();
    }
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Orca>(*this); }

    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override {
        cubic_.on_packet_sent(now, bytes, in_flight_bytes);
        in_flight_bytes_ = in_flight_bytes;
    }
    void on_ack(const AckEvent& event) override {
        cubic_.on_ack(event);
        period_.on_ack(event);
        smoothed_rtt_ = event.smoothed_rtt;
        in_flight_bytes_ = event.in_flight_bytes;
        if (timer_ == kNever) {
            period_.restart(event.now);
            timer_ = event.now + kPoll;
        }
        publish();
    }
    void on_loss(const LossEvent& event) override {
        period_.on_lost(event.lost_bytes);
        cubic_.on_loss(event);
        publish();
    }
    void on_persistent_congestion(Time now) override {
        cubic_.on_persistent_congestion(now);
        publish();
    }
    void on_spurious_loss(Time now) override {
        cubic_.on_spurious_loss(now);
        publish();
    }
    void on_ecn(const EcnEvent& event) override {
        cubic_.on_ecn(event);
        publish();
    }

    // A question clears the counters, whether or not anything comes of it.
    void on_timer(Time now) override {
        timer_ = now + kPoll;
        if (period_.rtt_samples() > 0.0) {
            is_steering_ = is_steering_ || cubic_.is_above_threshold();
            if (is_steering_) {
                steer(now);
                timer_ = now + static_cast<Time>(parameters_.period_ms * 1e6);
            } else {
                speed_up();
            }
            publish();
        }
        period_.restart(now);
    }

    void set_parameters(const ParameterValues& values) override {
        parameters_ = with_values(table(), "orca", parameters_, values);
        cubic_.set_parameters({{"slow_start", {parameters_.slow_start}}});
        publish();
    }
    ParameterValues parameters() const override { return to_values(table(), parameters_); }
    ControllerSnapshot snapshot() const override { return snapshot_in(cubic_.snapshot().mode); }

private:
    void speed_up() {
        const std::uint64_t packets = cubic_.window_packets();
        const std::uint64_t most = std::max(packets, kSendBufferBytes / max_datagram_bytes_);
        cubic_.write_window(std::min(packets * 11 / 10, most));
    }

    void steer(Time now) {
        const std::uint64_t packets = cubic_.window_packets();
        history_.push(features_.of({.throughput = period_.throughput(),
                                    .pacing_rate = pacing_rate_,
                                    .lost_rate = period_.lost_rate(now),
                                    .rtt_samples = period_.rtt_samples(),
                                    .window_packets = static_cast<double>(packets),
                                    .seconds = period_.seconds(now),
                                    .min_rtt = period_.min_rtt(),
                                    .smoothed_rtt = to_seconds(smoothed_rtt_)}));
        cubic_.write_window(orca_window(packets, ask(history_.values()).front()));
    }

    void publish() {
        window_bytes_ = cubic_.window_bytes();
        pacing_rate_ = pacing_of(window_bytes_, in_flight_bytes_, smoothed_rtt_);
    }

    OrcaParameters parameters_;
    Cubic cubic_;
    PeriodMeter period_;
    Time smoothed_rtt_ = 0;
    std::uint64_t in_flight_bytes_ = 0;
    bool is_steering_ = false;  // slow start has ended once
    OrcaFeatures features_;
    FrameStack history_{std::vector<float>(OrcaFeatures::kFrames * 7)};
};

ControllerSpecification specification(std::shared_ptr<const Network> network) {
    return {"orca", "Orca: a network scales the window of CUBIC every 30 ms",
            "Abbasloo et al., SIGCOMM 2020; Soheil-ab/Orca", specifications(table(), OrcaParameters()),
            making<Orca>(std::move(network))};
}

}  // namespace

AgentKind orca_agent() {
    return {"orca", OrcaFeatures::kFrames * 7, 1, "tanh", &specification};
}

}  // namespace quicgym::policy
