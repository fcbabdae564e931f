#include <algorithm>
#include <array>
#include <vector>

#include "controllers/parameters.hpp"
#include "sim/base/ring.hpp"
#include "sim/policy/authors/agent.hpp"
#include "sim/policy/authors/measurements.hpp"

namespace quicgym::policy {

namespace {

constexpr double kBytesPerMbps = 125'000.0;  // per second
// loaded_client.py. In training the rate stayed within 0.48 and 12 Mbps; no input depends on it.
constexpr double kLeastMbps = 0.5;
constexpr double kMostMbps = 300.0;
constexpr std::uint64_t kNoWindow = std::uint64_t{1} << 30;

enum class Variant { as_trained, published_client };

struct AuroraParameters {
    double variant = static_cast<double>(Variant::as_trained);
    double first_rate_mbps = 6.0;
};

const ParameterTable<AuroraParameters>& table() {
    using P = AuroraParameters;
    static const ParameterTable<P> rows = {
        choice<P, &P::variant>(
            "variant", {"as-trained", "published-client"},
            "as-trained: intervals, RTTs and the step 0.025 of the training; published-client: those of "
            "the authors' client for real packets, which is blind to latency, and the step 0.05",
            "PCC-RL, network_sim.py and loaded_client.py; PCC-Uspace, pcc_sender.cpp"),
        number<P, &P::first_rate_mbps>("first_rate_mbps", kLeastMbps, kMostMbps, "Mbps",
                                       "Rate until the first decision", "PCC-RL, loaded_client.py"),
    };
    return rows;
}

// The mean of [first, last).
double mean_of(const double* first, const double* last) {
    double sum = 0.0;
    for (const double* value = first; value != last; ++value) sum += *value;
    return first == last ? 0.0 : sum / static_cast<double>(last - first);
}

// A rate and no window. The two variants measure different intervals.
class Aurora : public AgentController {
public:
    Aurora(std::shared_ptr<const Network> network, const AuroraParameters& parameters,
           std::uint64_t max_datagram_bytes, double step)
        : AgentController(std::move(network), max_datagram_bytes), parameters_(parameters), step_(step) {
        window_bytes_ = kNoWindow;
        pacing_rate_ = parameters_.first_rate_mbps * kBytesPerMbps;
    }

    // A flow keeps its variant; the first rate is behind it.
    void set_parameters(const ParameterValues& values) override {
        const AuroraParameters next = with_values(table(), "aurora", parameters_, values);
        if (next.variant != parameters_.variant)
            throw std::invalid_argument(
                "parameter 'variant' of controller 'aurora' is fixed once a flow has begun; name it with the controller");
        parameters_ = next;
    }
    ParameterValues parameters() const override { return to_values(table(), parameters_); }

protected:
    void record(const AuroraInterval& interval) { history_.push(features_.of(interval)); }
    void decide() {
        const double rate = aurora_rate(pacing_rate_, ask(history_.values()).front(), step_);
        pacing_rate_ = std::clamp(rate, kLeastMbps * kBytesPerMbps, kMostMbps * kBytesPerMbps);
    }

private:
    static std::vector<float> missing() {
        FrameStack stack(std::vector<float>(AuroraFeatures::kFrames * AuroraFeatures::kMissing.size()));
        for (std::size_t i = 0; i < AuroraFeatures::kFrames; ++i) stack.push(AuroraFeatures::kMissing);
        return stack.values();
    }

    AuroraParameters parameters_;
    double step_;
    AuroraFeatures features_;
    FrameStack history_{missing()};
};

// The rule of the training: an interval counts what is sent and acknowledged in it, whichever packet it is.
class TrainedAurora final : public Aurora {
public:
    TrainedAurora(std::shared_ptr<const Network> network, const AuroraParameters& parameters,
                  std::uint64_t max_datagram_bytes)
        : Aurora(std::move(network), parameters, max_datagram_bytes, kAuroraTrainedStep) {}
    std::unique_ptr<Controller> clone() const override { return std::make_unique<TrainedAurora>(*this); }

    void on_packet_sent(Time, std::uint64_t bytes, std::uint64_t) override {
        sent_bytes_ += static_cast<double>(bytes);
    }

    void on_ack(const AckEvent& event) override {
        acked_bytes_ += static_cast<double>(event.newly_acked_bytes);
        if (event.rtt > 0) rtts_.push_back(to_seconds(event.rtt));
        if (length_ > 0 || event.smoothed_rtt <= 0) return;
        length_ = event.smoothed_rtt * 3 / 2;
        begin(event.now);
    }

    void on_timer(Time now) override {
        if (ignored_ > 0) {
            if (--ignored_ == 0) decide();
        } else if (sent_bytes_ > 0.0 || acked_bytes_ > 0.0) {  // else the flow is idle
            const AuroraInterval interval = measured(to_seconds(now - start_));
            record(interval);
            if (const double rtt = interval.mean_rtt(); rtt > 0.0)
                length_ = std::max<Time>(static_cast<Time>(0.5e9 * rtt), kMicrosecond);
            decide();
        }
        begin(now);
    }

private:
    void begin(Time now) {
        start_ = now;
        timer_ = now + length_;
        sent_bytes_ = acked_bytes_ = 0.0;
        rtts_.clear();
    }

    AuroraInterval measured(double seconds) const {
        const double* const first = rtts_.data();
        const double* const last = first + rtts_.size();
        const double* const middle = first + rtts_.size() / 2;
        return {.sent_bytes = sent_bytes_,
                .acked_bytes = acked_bytes_,
                .unmatched_bytes = static_cast<double>(max_datagram_bytes_),
                .send_seconds = seconds,
                .receive_seconds = seconds,
                .rtt_samples = static_cast<double>(rtts_.size()),
                .first_half_rtt = mean_of(first, middle),
                .second_half_rtt = mean_of(middle, last)};
    }

    int ignored_ = 2;  // intervals before the first decision
    Time length_ = 0;
    Time start_ = 0;
    double sent_bytes_ = 0.0;
    double acked_bytes_ = 0.0;
    std::vector<double> rtts_;  // seconds
};

// The rule of the authors' client: an interval counts its own packets, and is known about an RTT later.
// Several are open at a time, and each new one asks the network.
class PublishedAurora final : public Aurora {
public:
    PublishedAurora(std::shared_ptr<const Network> network, const AuroraParameters& parameters,
                    std::uint64_t max_datagram_bytes)
        : Aurora(std::move(network), parameters, max_datagram_bytes, kAuroraPublishedStep) {}
    std::unique_ptr<Controller> clone() const override { return std::make_unique<PublishedAurora>(*this); }

    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t) override {
        if (first_ == next_ || now >= open_[next_ - 1].end) begin(now);
        Open& current = open_[next_ - 1];
        current.sent_bytes += bytes;
        current.last_sent = now;
    }

    void on_ack(const AckEvent& event) override {
        if (event.rtt > 0) latest_rtt_ = event.rtt;
        if (event.newly_acked_bytes == 0) return;  // the handshake
        const std::uint64_t own = interval_of(event.largest_acked_sent_time);
        std::uint64_t bytes = event.newly_acked_bytes;
        // An ACK frame may reach back into the interval before.
        for (std::uint64_t i = first_; i < own && bytes > 0; ++i) {
            const std::uint64_t earlier = std::min(bytes, open_[i].unknown_bytes());
            if (earlier > 0) open_[i].acknowledge(event.now, earlier, latest_rtt_);
            bytes -= earlier;
        }
        if (own < next_ && bytes > 0) open_[own].acknowledge(event.now, bytes, latest_rtt_);
        complete(own, event.now);
    }

    void on_packet_lost(const LostPacket& packet) override {
        const std::uint64_t own = interval_of(packet.sent_time);
        if (own < next_) open_[own].lost_bytes += packet.size_bytes;
    }

private:
    struct Open {
        Time begin = 0;
        Time end = 0;  // packets sent from then on are of the next
        Time last_sent = 0;
        Time first_acked = kNever;
        Time last_acked = 0;
        Time first_rtt = 0;
        Time last_rtt = 0;
        std::uint64_t sent_bytes = 0;
        std::uint64_t acked_bytes = 0;
        std::uint64_t lost_bytes = 0;
        std::uint64_t first_acked_bytes = 0;

        std::uint64_t unknown_bytes() const {
            const std::uint64_t known = acked_bytes + lost_bytes;
            return known < sent_bytes ? sent_bytes - known : 0;
        }
        void acknowledge(Time now, std::uint64_t bytes, Time rtt) {
            if (first_acked == kNever) {
                first_acked = now;
                first_rtt = rtt;
                first_acked_bytes = bytes;
            }
            last_acked = now;
            last_rtt = rtt;
            acked_bytes += bytes;
        }
    };

    void begin(Time now) {
        if (is_informed_) decide();
        constexpr double kPackets = 5.0;
        constexpr double kPacketBytes = 1400.0;
        const auto packets = static_cast<Time>(kPackets * kPacketBytes / pacing_rate_ * 1e9);
        open_.make_room(first_, next_ + 1);
        open_[next_] = {.begin = now, .end = now + std::max(latest_rtt_ / 2, packets)};
        ++next_;
    }

    // Behind the last one, where the interval is no longer open.
    std::uint64_t interval_of(Time sent_time) const {
        std::uint64_t i = next_;
        while (i > first_ && open_[i - 1].begin > sent_time) --i;
        return i > first_ ? i - 1 : next_;
    }

    // Intervals whose packets are all acknowledged, lost, or overtaken by a packet of interval `own`.
    void complete(std::uint64_t own, Time now) {
        while (first_ < next_) {
            const Open& oldest = open_[first_];
            const bool overtaken = own < next_ && first_ < own;
            const bool known = now >= oldest.end && oldest.unknown_bytes() == 0;
            if (!overtaken && !known) return;
            record(measured(oldest));
            is_informed_ = true;
            ++first_;
        }
    }

    // RTTs in whole seconds, which is why the client is blind to latency.
    static AuroraInterval measured(const Open& interval) {
        const bool is_acked = interval.first_acked != kNever;
        return {.sent_bytes = static_cast<double>(interval.sent_bytes),
                .acked_bytes = static_cast<double>(interval.acked_bytes),
                .unmatched_bytes = static_cast<double>(interval.first_acked_bytes),
                .send_seconds = to_seconds(interval.last_sent - interval.begin),
                .receive_seconds = is_acked ? to_seconds(interval.last_acked - interval.first_acked) : 0.0,
                .rtt_samples = is_acked ? 2.0 : 0.0,
                .first_half_rtt = static_cast<double>(interval.first_rtt / kSecond),
                .second_half_rtt = static_cast<double>(interval.last_rtt / kSecond)};
    }

    Ring<Open> open_;
    std::uint64_t first_ = 0;  // open intervals are [first_, next_)
    std::uint64_t next_ = 0;
    Time latest_rtt_ = 0;
    bool is_informed_ = false;  // an interval is complete
};

ControllerSpecification specification(std::shared_ptr<const Network> network) {
    return {"aurora", "Aurora: a network sets the pacing rate at each monitor interval",
            "Jay et al., ICML 2019; PCCproject/PCC-RL", specifications(table(), AuroraParameters()),
            [network = std::move(network)](const ParameterValues& values,
                                           std::uint64_t max_datagram_bytes) -> std::unique_ptr<Controller> {
                const AuroraParameters parameters =
                    with_values(table(), "aurora", AuroraParameters(), values);
                if (parameters.variant == static_cast<double>(Variant::as_trained))
                    return std::make_unique<TrainedAurora>(network, parameters, max_datagram_bytes);
                return std::make_unique<PublishedAurora>(network, parameters, max_datagram_bytes);
            }};
}

}  // namespace

AgentKind aurora_agent() {
    return {"aurora", AuroraFeatures::kFrames * AuroraFeatures::kMissing.size(), 1, "linear", &specification};
}

}  // namespace quicgym::policy
