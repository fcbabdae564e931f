// Scalable TCP: Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM SIGCOMM
// Computer Communication Review 33(2), 2003, doi:10.1145/956981.956989.
#include <algorithm>
#include <limits>
#include <memory>

#include "controllers/parameters.hpp"
#include "controllers/plugin.hpp"
#include "controllers/window_pacing.hpp"

namespace {

using namespace quicgym;

struct ScalableParameters {
    double increase = 0.01;
    double decrease = 0.125;
    double legacy_window_packets = 16.0;
};

const ParameterTable<ScalableParameters>& table() {
    using P = ScalableParameters;
    static const ParameterTable<P> rows = {
        number<P, &P::increase>("increase", 1e-4, 1.0, "",
                                "Packets that each acknowledged packet adds to the window", "Kelly 2003, a"),
        number<P, &P::decrease>("decrease", 0.01, 0.9, "",
                                "Share of the window that a congestion event takes", "Kelly 2003, b"),
        number<P, &P::legacy_window_packets>("legacy_window_packets", 0.0, 1e4, "packets",
                                             "At this window and below NewReno's rules hold",
                                             "Kelly 2003, lwnd"),
    };
    return rows;
}

class Scalable final : public Controller {
public:
    Scalable(const ParameterValues& values, std::uint64_t max_datagram_bytes)
        : Controller(max_datagram_bytes),
          parameters_(with_values(table(), "scalable", ScalableParameters(), values)) {
        set_window(static_cast<double>(initial_window_bytes(max_datagram_bytes)));
    }
    std::unique_ptr<Controller> clone() const override { return std::make_unique<Scalable>(*this); }

    void on_ack(const AckEvent& event) override {
        pacing_.update_rtt(event.smoothed_rtt);
        // RFC 9002 7.3.2 and 7.8: no growth for packets of the recovery period, nor while the window is not
        // used.
        const bool may_grow = !recovery_.covers(event.largest_acked_sent_time) && !event.app_limited;
        const double acked = may_grow ? static_cast<double>(event.newly_acked_bytes) : 0.0;
        set_window(window_ + acked * (in_slow_start() ? 1.0 : increase_per_byte()));
    }

    void on_loss(const LossEvent& event) override {
        congestion_event(event.now, event.largest_lost_sent_time);
    }

    // RFC 9002 7.1: an increase of the ECN-CE count is treated as a loss.
    void on_ecn(const EcnEvent& event) override {
        if (event.newly_marked_packets > 0) congestion_event(event.now, event.largest_acked_sent_time);
    }

    // RFC 9002 7.6.2; the window comes back by slow start.
    void on_persistent_congestion(Time) override {
        recovery_.reset();
        set_window(0.0);
    }

    void set_parameters(const ParameterValues& values) override {
        parameters_ = with_values(table(), "scalable", parameters_, values);
    }
    ParameterValues parameters() const override { return to_values(table(), parameters_); }

    ControllerSnapshot snapshot() const override {
        return snapshot_in(in_slow_start() ? ControllerMode::slow_start
                                           : ControllerMode::congestion_avoidance);
    }

private:
    bool in_slow_start() const { return window_ < threshold_; }
    bool is_legacy() const {
        return window_ <= parameters_.legacy_window_packets * static_cast<double>(max_datagram_bytes_);
    }
    double increase_per_byte() const {
        return is_legacy() ? static_cast<double>(max_datagram_bytes_) / window_ : parameters_.increase;
    }

    void congestion_event(Time now, Time sent_time) {
        if (recovery_.covers(sent_time)) return;  // once per round trip
        recovery_.begin(now);
        threshold_ = window_ * (is_legacy() ? 0.5 : 1.0 - parameters_.decrease);
        set_window(threshold_);
    }

    void set_window(double bytes) {
        window_ = std::max(bytes, static_cast<double>(kMinimumWindowDatagrams * max_datagram_bytes_));
        window_bytes_ = static_cast<std::uint64_t>(window_);
        pacing_rate_ = pacing_.rate(in_slow_start() ? 2.0 : 1.25, window_);
    }

    ScalableParameters parameters_;
    double window_ = 0.0;  // bytes, with the fraction that single ACKs add
    double threshold_ = std::numeric_limits<double>::infinity();
    RecoveryPeriod recovery_;
    WindowPacing pacing_;
};

ControllerSpecification specification() {
    return {"scalable", "Scalable TCP: a window that grows by a share of itself each round trip",
            "Kelly 2003, doi:10.1145/956981.956989", specifications(table(), ScalableParameters()),
            construct<Scalable>};
}

}  // namespace

QUICGYM_CONTROLLER_MODULE(quicgym_scalable, specification())
