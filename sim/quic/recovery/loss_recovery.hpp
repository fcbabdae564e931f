// The sender's side of RFC 9002: what is in flight, what an ACK frame acknowledges, what is lost, and when
// to probe. The congestion controller and the stream are the caller's to inform.
#pragma once

#include <cstdint>

#include "controllers/controller.hpp"
#include "sim/base/time.hpp"
#include "sim/quic/frames.hpp"
#include "sim/quic/recovery/rtt_estimator.hpp"
#include "sim/quic/recovery/sent_packets.hpp"
#include "sim/quic/recovery/spurious_losses.hpp"
#include "sim/simulation.hpp"

namespace quicgym::quic {

class LossRecovery {
public:
    // The packets that an ACK frame acknowledges for the first time.
    struct NewlyAcked {
        const SentPacket* newest = nullptr;  // valid until the next packet is sent; null: nothing is new
        std::uint64_t bytes = 0;
        Time rtt_sample = kNever;   // as measured; kNever: none
        Time rtt = 0;               // the sample less the peer's ACK delay; 0: none
        std::uint64_t packets = 0;  // not beside bytes: to sum both in one vector takes more instructions
    };

    struct Rules {
        Time peers_max_ack_delay;
        Time probe_timeout;  // from the last packet or ACK to each of two probes in a row; 0: the RFC's
        bool by_time;        // losses are detected by time, too (6.1.2)
        bool adaptive;       // thresholds rise where packets arrive that were declared lost (6.1.1)
    };
    explicit LossRecovery(const Rules& rules)
        : by_time_(rules.by_time),
          adaptive_(rules.adaptive),
          probe_timeout_(rules.probe_timeout),
          rtt_(rules.peers_max_ack_delay) {}

    std::uint64_t next_packet_number() const { return sent_.next(); }
    // How many packet numbers the peer cannot tell from the next one yet (RFC 9000 A.2).
    std::uint64_t unacknowledged_numbers() const {
        return largest_acked_ == kNoPacket ? sent_.next() + 1 : sent_.next() - largest_acked_;
    }
    std::uint64_t unresolved_numbers() const { return sent_.next() - sent_.oldest(); }  // from the oldest on
    std::uint64_t in_flight_bytes() const { return in_flight_; }
    std::uint64_t lost_packets() const { return lost_packets_; }
    std::uint64_t ecn_marks() const { return ecn_ce_count_; }  // reported by the peer
    std::uint64_t lost_bytes() const { return lost_bytes_; }
    const RttEstimator& rtt() const { return rtt_; }

    // The handshake's sample of the RTT.
    void on_handshake_rtt(Time now, Time sample) {
        rtt_.update(sample, 0);
        first_rtt_time_ = now;
    }

    // Records the next packet; the caller fills in the fields on its stream data and for the delivery rate.
    SentPacket& on_packet_sent(Time now, std::uint16_t size_bytes, bool ack_eliciting) {
        SentPacket& packet = sent_.push();
        packet.sent_time = now;
        packet.size_bytes = size_bytes;
        packet.repaired = false;
        packet.state = PacketState::not_ack_eliciting;
        if (ack_eliciting) {
            packet.state = PacketState::outstanding;
            in_flight_ += size_bytes;
            last_ack_eliciting_sent_ = now;
        }
        return packet;
    }

    // detect_losses must follow where something is new.
    NewlyAcked on_ack(Time now, const AckFrame& ack);
    // Counts the lost packets that this frame acknowledges. True where, with them, all that the latest
    // recovery period declared lost has arrived.
    bool find_spurious_losses(const AckFrame& ack) {
        if (!spurious_losses_.may_be_in(ack)) [[likely]]
            return false;
        return take_spurious_losses(spurious_losses_.on_ack(ack));
    }
    // How much more the peer's count of ECN-CE is than in any frame before.
    std::uint64_t on_ecn_counts(const AckFrame& ack);

    // RFC 9002 6.1 and A.10. Calls `on_lost` with number and record of every packet that is lost now.
    // forget_resolved must follow.
    template <class OnLost>
    LossEvent detect_losses(Time now, OnLost on_lost);
    // Forgets packets that are acknowledged or lost. Returns true when the losses among them show persistent
    // congestion.
    bool forget_resolved();

    // When losses are to be detected or a probe is to be sent; kNever: nothing is waited for.
    Time timeout() const {
        if (loss_time_ != kNever) return loss_time_;
        if (in_flight_ == 0) return kNever;
        if (fixed_probe()) [[unlikely]]
            return std::max(last_ack_eliciting_sent_, last_ack_) + probe_timeout_;
        return last_ack_eliciting_sent_ + rtt_.probe_timeout(rtt_.max_ack_delay(), probe_count_);
    }
    bool loss_timer_armed() const { return loss_time_ != kNever; }
    // RFC 9002 6.1.1: enough was acknowledged that was sent after it.
    bool is_behind_threshold(std::uint64_t number) const {
        return !reordering_seen_ && number + kPacketThreshold <= largest_acked_;
    }

    // RFC 9002 6.2.4. Each probe is to be sent whatever window and pacing say.
    void on_probe_timeout() {
        probes_to_send_ = fixed_probe() ? 1 : kProbesPerTimeout;
        ++probe_count_;
        ++probe_timeouts_;
    }
    bool take_probe() {
        if (probes_to_send_ == 0) return false;
        --probes_to_send_;
        return true;
    }
    // The oldest packet with unacknowledged data, for a probe to carry again, and the next one at the next
    // call. Should the probe be lost, it is the probe that is repaired. Null: there is none.
    const SentPacket* repair_oldest();

    void add_statistics(FlowStatistics& statistics) const;

private:
    [[gnu::noinline]] bool take_spurious_losses(SpuriousLosses::Arrived arrived);

    static constexpr std::uint64_t kPacketThreshold = 3;  // RFC 9002 6.1.1
    static constexpr std::uint32_t kProbesPerTimeout = 2;
    static constexpr std::uint32_t kMostFixedProbes = 2;
    static constexpr std::uint32_t kSpuriousRecoveries = 16;  // RFC 8985 6.2, RACK.reo_wnd_persist

    // RFC 9002 6.1.2. Once a loss has been spurious, RFC 8985 6.2, RACK_update_reo_wnd: time alone decides,
    // and waits a quarter of the lowest RTT longer for each round trip with another such loss, up to a
    // smoothed RTT.
    Time loss_delay() const {
        const Time delay = rtt_.loss_delay();
        if (!reordering_seen_) [[likely]]
            return delay;
        const Time window = std::min(reordering_steps_ * (rtt_.minimum() / 4), rtt_.smoothed());
        return std::max(delay, std::max(rtt_.smoothed(), rtt_.latest()) + window);
    }
    void on_recovery_period() {
        if (reordering_steps_ > 1 && --recoveries_left_ == 0) reordering_steps_ = 1;
    }

    bool fixed_probe() const { return probe_timeout_ > 0 && probe_count_ < kMostFixedProbes; }

    // The names in comments are those of RFC 9002, appendix A.
    SentPackets sent_;
    std::uint64_t in_flight_ = 0;
    std::uint64_t largest_acked_ = kNoPacket;
    Time loss_time_ = kNever;
    Time last_ack_eliciting_sent_ = 0;
    std::uint32_t probe_count_ = 0;  // pto_count
    std::uint32_t probes_to_send_ = 0;
    bool by_time_;
    bool adaptive_;
    bool reordering_seen_ = false;
    std::uint32_t recoveries_left_ = 0;   // until the steps are forgotten
    Time reordering_steps_ = 1;           // RACK.reo_wnd_mult
    std::uint64_t next_step_number_ = 0;  // RACK.dsack_round: another step once this packet is acknowledged
    Time probe_timeout_;
    Time last_ack_ = 0;  // with probe_timeout_
    RttEstimator rtt_;
    Time first_rtt_time_ = kNever;  // first_rtt_sample: persistent congestion needs one from before
    Time lost_run_start_ = kNever;  // send time of the first packet of the current run of losses
    std::uint64_t ecn_ce_count_ = 0;
    SpuriousLosses spurious_losses_;

    std::uint64_t lost_packets_ = 0;
    std::uint64_t spuriously_lost_packets_ = 0;
    std::uint64_t lost_bytes_ = 0;
    std::uint64_t congestion_events_ = 0;
    std::uint64_t persistent_congestion_events_ = 0;
    std::uint64_t probe_timeouts_ = 0;
};

template <class OnLost>
LossEvent LossRecovery::detect_losses(Time now, OnLost on_lost) {
    LossEvent event;
    loss_time_ = kNever;
    if (largest_acked_ == kNoPacket) return event;
    const Time loss_delay = this->loss_delay();
    for (std::uint64_t number = sent_.oldest(); number < largest_acked_; ++number) {
        SentPacket& packet = sent_[number];
        if (packet.state != PacketState::outstanding) continue;
        if (!is_behind_threshold(number) && !(by_time_ && packet.sent_time + loss_delay <= now)) {
            // Packets leave in order: the first that may be lost later is the next to be.
            if (by_time_) loss_time_ = packet.sent_time + loss_delay;
            break;
        }
        packet.state = PacketState::lost;
        in_flight_ -= packet.size_bytes;
        lost_bytes_ += packet.size_bytes;
        event.lost_bytes += packet.size_bytes;
        ++event.lost_packets;
        event.largest_lost_sent_time = packet.sent_time;
        if (spurious_losses_.on_lost(now, number, packet.sent_time)) on_recovery_period();
        on_lost(number, packet);
    }
    if (event.lost_packets == 0) return event;
    lost_packets_ += event.lost_packets;
    ++congestion_events_;
    event.now = now;
    event.in_flight_bytes = in_flight_;
    return event;
}

}  // namespace quicgym::quic
