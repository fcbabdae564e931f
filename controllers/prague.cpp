// Prague congestion control, draft-briscoe-iccrg-prague-congestion-control-04 ("the draft" below), for QUIC:
// the response to marks of a low-latency, scalable bottleneck (L4S, RFC 9330 and RFC 9331).
#include <algorithm>
#include <limits>
#include <utility>

#include "controllers/controller.hpp"
#include "controllers/parameters.hpp"
#include "controllers/registration.hpp"
#include "controllers/window_pacing.hpp"

namespace quicgym {

namespace {

struct PragueParameters {
    double alpha_gain = 1.0 / 16.0;
    double virtual_rtt_ms = 25.0;
    double transition_rounds = 500.0;
    double loss_reduction_factor = 0.5;
    double pacing_gain = 1.0;
    double slow_start_pacing_gain = 2.0;
};

class Prague final : public Controller {
public:
    Prague(const ParameterValues& values, std::uint64_t max_datagram_bytes);
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Prague>(*this); }

    bool wants_l4s() const override { return true; }
    void on_ack(const AckEvent& event) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    void set_parameters(const ParameterValues& values) override;
    ParameterValues parameters() const override;
    ControllerSnapshot snapshot() const override;

private:
    // Prague's round trip, which is over when a packet that was sent after its begin is acknowledged and the
    // virtual RTT has passed.
    struct VirtualRound {
        Time begin = 0;
        bool is_over(Time now, Time sent_time, Time virtual_rtt) const {
            return sent_time > begin && now - begin >= virtual_rtt;
        }
    };

    bool in_slow_start() const { return window_ < slow_start_threshold_; }
    bool has_reduced_rtt_dependence() const { return rounds_ >= parameters_.transition_rounds; }
    Time virtual_rtt() const;
    void update_alpha(const AckEvent& event);
    void grow(double unmarked_packets);
    void publish();

    PragueParameters parameters_;

    // Windows in packets of the maximum datagram size.
    double window_;
    double slow_start_threshold_;

    Time smoothed_rtt_ = 0;
    double rounds_ = 0.0;  // packet-timed, so far

    // Section 2.3.2. Alpha is 1, and not updated, until the first mark.
    double alpha_ = 1.0;
    bool has_marks_ = false;
    VirtualRound alpha_round_;
    double acked_packets_ = 0.0;         // in this round
    double marked_packets_ = 0.0;        // in this round
    double newly_marked_packets_ = 0.0;  // by the ACK frame whose on_ack is still to come

    // Section 2.4.2, the state "congestion window reduced".
    bool reduced_ = false;
    VirtualRound reduced_round_;
    double window_before_reduction_ = 0.0;

    RecoveryPeriod recovery_;  // after a loss
    WindowPacing pacing_;
};

const ParameterTable<PragueParameters>& table() {
    using P = PragueParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::alpha_gain>("alpha_gain", 0.001, 1.0, "",
                                  "g: weight of the last round's share of marked packets in alpha",
                                  "Prague draft-04, 2.3.2")
            .logarithmic(),
        number<P, &P::virtual_rtt_ms>(
            "virtual_rtt_ms", 0.0, 1000.0, "ms",
            "With a shorter RTT the window grows, and is cut, as slowly as with this",
            "Prague draft-04, 2.4.4")
            .logarithmic(1.0),
        number<P, &P::transition_rounds>("transition_rounds", 0.0, 1e9, "rounds",
                                         "The virtual RTT is in force after so many round trips",
                                         "Prague draft-04, 2.4.4")
            .logarithmic(1.0),
        number<P, &P::loss_reduction_factor>("loss_reduction_factor", 0.1, 0.95, "",
                                             "What is left of the window after a loss",
                                             "Prague draft-04, 2.4.1; RFC 9002 B.1"),
        number<P, &P::pacing_gain>("pacing_gain", 1.0, 4.0, "",
                                   "N in pacing rate = N * window / smoothed RTT, in congestion avoidance",
                                   "Prague draft-04, 2.5"),
        number<P, &P::slow_start_pacing_gain>("slow_start_pacing_gain", 1.0, 4.0, "",
                                              "N below half the slow start threshold",
                                              "Prague draft-04, 2.5"),
    };
    return rows;
}

constexpr char kName[] = "prague";
constexpr double kMinimumWindow = static_cast<double>(kMinimumWindowDatagrams);

Prague::Prague(const ParameterValues& values, std::uint64_t max_datagram_bytes)
    : Controller(max_datagram_bytes),
      parameters_(with_values(table(), kName, PragueParameters(), values)),
      window_(static_cast<double>(initial_window_bytes(max_datagram_bytes)) /
              static_cast<double>(max_datagram_bytes)),
      slow_start_threshold_(std::numeric_limits<double>::infinity()) {
    publish();
}

Time Prague::virtual_rtt() const {
    const auto shortest = static_cast<Time>(parameters_.virtual_rtt_ms * 1e6);
    return has_reduced_rtt_dependence() ? std::max(smoothed_rtt_, shortest) : smoothed_rtt_;
}

void Prague::on_ack(const AckEvent& event) {
    smoothed_rtt_ = event.smoothed_rtt;
    pacing_.update_rtt(event.smoothed_rtt);
    recovery_.on_ack(event.largest_acked_sent_time);
    rounds_ += event.round_start ? 1.0 : 0.0;
    const double unmarked =
        std::max(static_cast<double>(event.newly_acked_packets) - newly_marked_packets_, 0.0);
    update_alpha(event);
    // RFC 9002 B.5 and 7.8: no growth for packets of the recovery period after a loss, nor while
    // underutilised. "Congestion window reduced" does not keep the window from growing (2.4.3).
    if (!recovery_.covers(event.largest_acked_sent_time) && !event.app_limited) grow(unmarked);
    publish();
}

// 2.3.2: alpha += g * (share of marked packets - alpha), once per virtual round trip.
void Prague::update_alpha(const AckEvent& event) {
    acked_packets_ += static_cast<double>(event.newly_acked_packets);
    has_marks_ = has_marks_ || newly_marked_packets_ > 0.0;
    marked_packets_ += std::exchange(newly_marked_packets_, 0.0);
    if (!alpha_round_.is_over(event.now, event.largest_acked_sent_time, virtual_rtt())) return;
    if (has_marks_ && acked_packets_ > 0.0) {
        const double share = std::min(marked_packets_ / acked_packets_, 1.0);
        alpha_ += parameters_.alpha_gain * (share - alpha_);
    }
    alpha_round_.begin = event.now;
    acked_packets_ = marked_packets_ = 0.0;
}

// 2.4.3: only unmarked packets add to the window. 2.4.4: with the virtual RTT, rate and growth of the rate
// are those of a flow with that RTT, which takes the square of the ratio in every real round trip.
void Prague::grow(double unmarked_packets) {
    if (in_slow_start()) {
        window_ += unmarked_packets;
        return;
    }
    const Time virtual_rtt = this->virtual_rtt();
    const double ratio =
        virtual_rtt > 0 ? static_cast<double>(smoothed_rtt_) / static_cast<double>(virtual_rtt) : 1.0;
    window_ += unmarked_packets * ratio * ratio / window_;
}

// 2.4.2: alpha / 2 of the window, at most once per virtual round trip.
void Prague::on_ecn(const EcnEvent& event) {
    if (event.newly_marked_packets == 0) return;
    newly_marked_packets_ += static_cast<double>(event.newly_marked_packets);
    if (recovery_.covers(event.largest_acked_sent_time)) return;
    if (reduced_ && !reduced_round_.is_over(event.now, event.largest_acked_sent_time, virtual_rtt())) return;
    reduced_ = true;
    reduced_round_.begin = event.now;
    window_before_reduction_ = window_;
    window_ = std::max(window_ * (1.0 - alpha_ / 2.0), kMinimumWindow);
    slow_start_threshold_ = window_;
    publish();
}

// 2.4.1: as Reno. A reduction for marks within the round trip before is part of it.
void Prague::on_loss(const LossEvent& event) {
    if (recovery_.covers(event.largest_lost_sent_time)) return;
    recovery_.begin(event.now);
    const bool within =
        reduced_ && !reduced_round_.is_over(event.now, event.largest_lost_sent_time, virtual_rtt());
    const double before = within ? window_before_reduction_ : window_;
    window_ = std::max(std::min(window_, before * parameters_.loss_reduction_factor), kMinimumWindow);
    slow_start_threshold_ = window_;
    reduced_ = false;
    publish();
}

// RFC 9002 7.6.2 and B.8; the threshold stays, so the window comes back by slow start.
void Prague::on_persistent_congestion(Time) {
    window_ = kMinimumWindow;
    reduced_ = false;
    recovery_.reset();
    publish();
}

void Prague::publish() {
    const double bytes = window_ * static_cast<double>(max_datagram_bytes_);
    window_bytes_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes + 0.5));
    const bool doubles = window_ < slow_start_threshold_ / 2.0;
    pacing_rate_ =
        pacing_.rate(doubles ? parameters_.slow_start_pacing_gain : parameters_.pacing_gain, bytes);
}

void Prague::set_parameters(const ParameterValues& values) {
    parameters_ = with_values(table(), kName, parameters_, values);
    publish();
}

ParameterValues Prague::parameters() const {
    return to_values(table(), parameters_);
}

ControllerSnapshot Prague::snapshot() const {
    return snapshot_in(recovery_.mode(in_slow_start()));
}

ControllerSpecification prague_specification() {
    return {kName, "Prague: the window is cut in proportion to the share of marked packets (L4S)",
            "draft-briscoe-iccrg-prague-congestion-control-04", specifications(table(), PragueParameters()),
            construct<Prague>};
}

const Registration registered(prague_specification);

}  // namespace

}  // namespace quicgym
