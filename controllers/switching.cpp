#include "controllers/switching.hpp"

#include "controllers/catalogue.hpp"

namespace quicgym {

Switching::Switching(const std::vector<Member>& members, std::uint64_t max_datagram_bytes)
    : Controller(max_datagram_bytes) {
    for (const auto& [name, parameters] : members) {
        members_.push_back(make_controller(name, parameters, max_datagram_bytes));
    }
    publish();
}

// Only the active controller needs this, to pace after an idle period.
void Switching::on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) {
    if (sending_since_ == kNever) sending_since_ = now;
    members_[active_]->on_packet_sent(now, bytes, in_flight_bytes);
    publish();
}

void Switching::on_ack(const AckEvent& event) {
    // From a copy, so that the active one draws what it would draw alone.
    Random random = *event.random;
    AckEvent standing_by = event;
    standing_by.app_limited = standing_by.no_unsent_data = standing_by.sample.app_limited = true;
    standing_by.random = &random;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        if (i != active_) members_[i]->on_ack_standing_by(standing_by);
    }
    AckEvent own = event;
    // Packets from before the switch left at another one's rate.
    own.sample.app_limited |= event.largest_acked_sent_time < sending_since_;
    members_[active_]->on_ack(own);
    publish();
}

void Switching::on_loss(const LossEvent& event) {
    for (const auto& member : members_) member->on_loss(event);
    publish();
}

void Switching::on_packet_lost(const LostPacket& packet) {
    for (const auto& member : members_) member->on_packet_lost(packet);
    publish();
}

void Switching::on_spurious_loss(Time now) {
    for (const auto& member : members_) member->on_spurious_loss(now);
    publish();
}

void Switching::on_persistent_congestion(Time now) {
    for (const auto& member : members_) member->on_persistent_congestion(now);
    publish();
}

void Switching::on_ecn(const EcnEvent& event) {
    for (const auto& member : members_) member->on_ecn(event);
    publish();
}

ControllerSnapshot Switching::snapshot() const {
    return members_[active_]->snapshot();
}

void Switching::activate(std::size_t member) {
    if (member == active_) return;
    const Controller& former = *members_[active_];
    const ControllerMode mode = former.snapshot().mode;
    const bool slow_start = mode == ControllerMode::slow_start || mode == ControllerMode::startup;
    members_[member]->take_over(former.window_to_hand_over(), slow_start);
    active_ = member;
    sending_since_ = kNever;
    publish();
}

void Switching::publish() {
    window_bytes_ = members_[active_]->window_bytes();
    pacing_rate_ = members_[active_]->pacing_rate();
}

}  // namespace quicgym
