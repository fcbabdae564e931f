#include "controllers/parameters.hpp"
#include "sim/base/ring.hpp"
#include "sim/policy/authors/agent.hpp"
#include "sim/policy/authors/measurements.hpp"

namespace quicgym::policy {

namespace {

struct AstraeaParameters {
    double period_ms = 30.0;
};

const ParameterTable<AstraeaParameters>& table() {
    using P = AstraeaParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::period_ms>("period_ms", 1.0, 1000.0, "ms", "Time between two decisions",
                                 "Astraea, README.md; client_eval.cc has 20 ms where none is given"),
    };
    return rows;
}

// Packets in flight whose data was sent before. Lost data goes out again before new data.
class Retransmissions {
public:
    void on_lost(std::uint64_t bytes) { due_bytes_ += bytes; }
    void on_sent(Time now, std::uint64_t bytes) {
        if (due_bytes_ == 0) return;
        due_bytes_ -= std::min(due_bytes_, bytes);
        sent_times_.make_room(first_, next_ + 1);
        sent_times_[next_++] = now;
    }
    void on_acked(Time largest_sent_time) {
        while (first_ < next_ && sent_times_[first_] <= largest_sent_time) ++first_;
    }
    std::uint64_t in_flight() const { return next_ - first_; }

private:
    std::uint64_t due_bytes_ = 0;
    Ring<Time> sent_times_;
    std::uint64_t first_ = 0;
    std::uint64_t next_ = 0;
};

// A window of whole packets that only decisions change: no slow start, and no answer to losses.
class Astraea final : public AgentController {
public:
    Astraea(std::shared_ptr<const Network> network, const ParameterValues& values,
            std::uint64_t max_datagram_bytes)
        : AgentController(std::move(network), max_datagram_bytes),
          parameters_(with_values(table(), "astraea", AstraeaParameters(), values)) {
        publish();
    }
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Astraea>(*this); }

    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override {
        retransmissions_.on_sent(now, bytes);
        in_flight_bytes_ = in_flight_bytes;
    }
    void on_ack(const AckEvent& event) override {
        if (timer_ == kNever) {  // the first decision is at once, and knows nothing
            decide(event.now);
            timer_ = event.now + period();
        }
        smoothed_rtt_ = event.smoothed_rtt;
        in_flight_bytes_ = event.in_flight_bytes;
        if (event.newly_acked_bytes > 0) {  // else it is the handshake
            period_.on_ack(event);
            retransmissions_.on_acked(event.largest_acked_sent_time);
        }
        publish();
    }
    void on_packet_lost(const LostPacket& packet) override {
        period_.on_lost(packet.size_bytes);
        retransmissions_.on_lost(packet.size_bytes);
    }
    // Linux's timeout; the window grows by decisions again.
    void on_persistent_congestion(Time) override {
        packets_ = kLeastPackets;
        publish();
    }
    // The clock runs on from where it should have stood.
    void on_timer(Time now) override {
        decide(now);
        due_ += period();
        if (due_ <= now) due_ = now + period();
        timer_ = due_;
        publish();
    }

    void set_parameters(const ParameterValues& values) override {
        parameters_ = with_values(table(), "astraea", parameters_, values);
    }
    ParameterValues parameters() const override { return to_values(table(), parameters_); }

private:
    static constexpr std::uint64_t kLeastPackets = 4;

    Time period() const { return static_cast<Time>(parameters_.period_ms * 1e6); }

    void decide(Time now) {
        if (due_ == 0) due_ = now + period();
        history_.push(features_.of(
            {.throughput = period_.throughput(),
             .mean_rtt = period_.mean_rtt(),
             .min_rtt = period_.min_rtt(),
             .smoothed_rtt = to_seconds(smoothed_rtt_),
             .window_packets = static_cast<double>(packets_),
             .lost_rate = period_.lost_rate(now),
             .packets_out = static_cast<double>(in_flight_bytes_) / static_cast<double>(max_datagram_bytes_),
             .pacing_rate = pacing_rate_,
             .retransmitted_packets = static_cast<double>(retransmissions_.in_flight())}));
        packets_ = astraea_window(packets_, ask(history_.values()).front());
        period_.restart(now);
    }

    void publish() {
        window_bytes_ = packets_ * max_datagram_bytes_;
        pacing_rate_ = pacing_of(window_bytes_, in_flight_bytes_, smoothed_rtt_);
    }

    AstraeaParameters parameters_;
    std::uint64_t packets_ = 10;
    PeriodMeter period_;
    Retransmissions retransmissions_;
    Time smoothed_rtt_ = 0;
    Time due_ = 0;  // the next decision
    std::uint64_t in_flight_bytes_ = 0;
    AstraeaFeatures features_;
    FrameStack history_{std::vector<float>(AstraeaFeatures::kFrames * 10)};
};

ControllerSpecification specification(std::shared_ptr<const Network> network) {
    return {"astraea", "Astraea: a network changes the window every 30 ms",
            "Liao et al., EuroSys 2024; xudongliao/astraea-open-source",
            specifications(table(), AstraeaParameters()), making<Astraea>(std::move(network))};
}

}  // namespace

AgentKind astraea_agent() {
    return {"astraea", AstraeaFeatures::kFrames * 10, 1, "tanh", &specification};
}

}  // namespace quicgym::policy
