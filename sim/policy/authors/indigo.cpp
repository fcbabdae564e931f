#include <algorithm>
#include <cmath>

#include "controllers/parameters.hpp"
#include "sim/policy/authors/agent.hpp"
#include "sim/policy/authors/measurements.hpp"

namespace quicgym::policy {

namespace {

// A window in packets and no pacing. Losses change nothing.
class Indigo final : public AgentController {
public:
    Indigo(std::shared_ptr<const Network> network, const ParameterValues&, std::uint64_t max_datagram_bytes)
        : AgentController(std::move(network), max_datagram_bytes) {
        constexpr double kUnpaced = 1.25e11;  // bytes per second: 1 Tbps
        pacing_rate_ = kUnpaced;
        publish();
    }
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Indigo>(*this); }

    void on_ack(const AckEvent& event) override {
        if (event.rtt <= 0 || event.newly_acked_packets == 0) return;
        // Every packet that was sent is delivered, lost or in flight.
        const auto sent_bytes = static_cast<double>(event.sample.delivered_bytes + event.sample.lost_bytes +
                                                    event.in_flight_bytes + max_datagram_bytes_) -
                                static_cast<double>(event.sample.in_flight_at_send_bytes);
        const auto state =
            features_.on_ack({.now_ms = event.now / kMillisecond,
                              .rtt_ms = whole_ms(event.now, event.rtt),
                              .delivered_bytes = static_cast<double>(event.sample.delivered_bytes),
                              .delivered_ms = whole_ms(event.now, event.sample.interval),
                              .sent_bytes = sent_bytes,
                              .packets = static_cast<double>(event.newly_acked_packets)});
        if (state) decide(*state);
    }

    void set_parameters(const ParameterValues& values) override {
        if (!values.empty()) throw_unknown_parameter("indigo", values.begin()->first, {});
    }
    ParameterValues parameters() const override { return {}; }

private:
    // Differences of a clock in whole milliseconds.
    static std::int64_t whole_ms(Time now, Time elapsed) {
        return now / kMillisecond - (now - elapsed) / kMillisecond;
    }

    void decide(const std::array<double, 3>& state) {
        constexpr std::array<double, 3> kScales = {200.0, 200.0, 200.0};
        constexpr double kWindowScale = 5000.0;
        for (std::size_t i = 0; i < state.size(); ++i) inputs_[i] = static_cast<float>(state[i] / kScales[i]);
        inputs_[3] = static_cast<float>(packets_ / kWindowScale);
        const std::vector<float>& scores = ask(inputs_);
        const auto action =
            static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
        std::fill(inputs_.begin() + 4, inputs_.end(), 0.0F);
        inputs_[4 + action] = 1.0F;
        packets_ = indigo_window(packets_, action);
        publish();
    }

    // A packet may be sent while fewer are in flight than the window, which may be a fraction.
    void publish() { window_bytes_ = static_cast<std::uint64_t>(std::ceil(packets_)) * max_datagram_bytes_; }

    double packets_ = 10.0;
    IndigoFeatures features_;
    // Delay, delivery rate, sending rate, window, and the previous action as one of five; at first "x 2".
    std::vector<float> inputs_ = {0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 1.0F};
};

ControllerSpecification specification(std::shared_ptr<const Network> network) {
    return {"indigo",
            "Indigo: a recurrent network chooses among five changes of the window",
            "Yan et al., USENIX ATC 2018; StanfordSNR/indigo",
            {},
            making<Indigo>(std::move(network))};
}

}  // namespace

AgentKind indigo_agent() {
    return {"indigo", 4 + IndigoFeatures::kActions, IndigoFeatures::kActions, "argmax", &specification};
}

}  // namespace quicgym::policy
