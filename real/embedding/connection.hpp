// A controller inside somebody else's QUIC stack: it is told of packets, and makes of them the events that
// sim/quic/sender.cpp gives a controller. Loss detection and timers are the stack's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>

#include "controllers/controller.hpp"
#include "sim/base/random.hpp"
#include "sim/quic/recovery/delivery_rate.hpp"
#include "sim/quic/recovery/rtt_estimator.hpp"
#include "sim/quic/recovery/sent_packets.hpp"
#include "sim/quic/recovery/spurious_losses.hpp"
#include "sim/simulation.hpp"

namespace quicgym::embedding {

// Packet numbers are those of the application data space. Every call throws std::invalid_argument, and
// changes nothing, for a time before the last call's and for a packet that cannot be meant.
//
// A controller hears of an ACK frame last, after the losses that it reveals, whereas stacks tell of losses
// after acknowledgements. So an acknowledgement waits until something is asked or sent, or time has passed.
class Connection {
public:
    Connection(std::unique_ptr<Controller> controller, std::uint64_t seed, Time start);

    // The handshake is complete; `rtt` is its sample, 0: none. Before the first packet, or not at all.
    void on_handshake(Time now, Time rtt);
    // An ack-eliciting packet. Numbers may be left out, kMostLeftOut in a row.
    void on_sent(Time now, std::uint64_t packet_number, std::uint64_t bytes);
    // What an ACK frame acknowledges for the first time, ascending. Numbers that on_sent was not told of do
    // not matter; a lost packet may arrive after all.
    void on_ack(Time now, Time ack_delay, std::span<const std::uint64_t> packet_numbers);
    // Declared lost, ascending.
    void on_loss(Time now, std::span<const std::uint64_t> packet_numbers);
    void on_ecn(Time now, std::uint64_t newly_marked_packets);
    void on_persistent_congestion(Time now);
    // The window has room, but there is nothing to send (on_app_limited), or the peer's flow control holds
    // back what there is (on_window_unused).
    void on_app_limited(Time now);
    void on_window_unused(Time now);
    // AckEvent::unsent_bytes and blocked_events from now on.
    void set_application(std::uint64_t unsent_bytes, std::uint64_t blocked_events);

    // Throws as Controller::set_parameters.
    void set_parameters(const ParameterValues& values);
    // The state after everything that the host has reported.
    const Controller& controller();
    FlowState state(Time now);

    Time now() const { return now_; }
    std::uint64_t in_flight_bytes() const { return in_flight_; }

    static constexpr std::uint64_t kMostLeftOut = 4096;
    // Short of overflow, whatever a controller adds up or multiplies.
    static constexpr Time kLatest = (Time{1} << 62) - 1;
    static constexpr Time kLongestRtt = 24 * 3600 * kSecond;

private:
    // So many packets with a known fate are remembered, to tell a late arrival from one reported twice.
    static constexpr std::uint64_t kRemembered = 1024;

    void advance(Time now);  // checks the time
    void flush();
    bool is_known(std::uint64_t packet_number) const;
    void check_ascending(std::span<const std::uint64_t> packet_numbers) const;
    void forget();

    std::unique_ptr<Controller> controller_;
    quic::SentPackets sent_;
    quic::RttEstimator rtt_;
    quic::DeliveryRate delivery_rate_{false};
    quic::SpuriousLosses spurious_losses_;
    Random random_;
    Time start_;
    Time now_;
    bool handshake_done_ = false;
    bool has_pending_ = false;
    AckEvent pending_;                       // waits for flush()
    std::uint64_t pending_lost_before_ = 0;  // lost_bytes_ when its newest packet was sent
    std::uint64_t in_flight_ = 0;
    std::uint64_t largest_acked_ = 0;  // one more; 0: none
    std::uint64_t sent_bytes_ = 0;
    std::uint64_t lost_bytes_ = 0;
    std::uint64_t marks_ = 0;
    std::uint64_t unsent_bytes_ = 0;
    std::uint64_t blocked_events_ = 0;
    Time newest_acked_sent_time_ = 0;
    std::uint64_t rtt_samples_ = 0;
    double rtt_sum_seconds_ = 0.0;
};

}  // namespace quicgym::embedding
