#include "sim/quic/short_flows.hpp"

#include <algorithm>
#include <cmath>

#include "controllers/catalogue.hpp"

namespace quicgym::quic {

namespace {

// Connections of different entries, and flows, draw from different streams.
constexpr std::uint64_t kConnectionsPerEntry = 1ULL << 40;

// The flow of every connection of the entry. A transfer continues after the time when no more arrive.
Flow connection_of(const ShortFlows& short_flows) {
    Flow flow = short_flows.flow;
    flow.application = {};
    flow.application.kind = ApplicationKind::transfer;
    flow.stop = kNever;
    return flow;
}

// Looks the controller and its parameters up once, not for every connection.
ControllerFactory factory_of(const Flow& flow) {
    if (flow.controller_factory) return flow.controller_factory;
    const ControllerSpecification& specification = find_controller(flow.controller);
    return [make = specification.make, values = complete_parameters(specification, flow.parameters)](
               const ParameterValues&, std::uint64_t max_datagram_bytes) {
        return make(values, max_datagram_bytes);
    };
}

}  // namespace

// ---- senders -------------------------------------------------------------------------------

ShortFlowSenders::ShortFlowSenders(const ShortFlows& short_flows, std::size_t index, std::uint64_t seed,
                                   TransferTable& transfers)
    : flow_(connection_of(short_flows)),
      arrivals_per_second_(short_flows.arrivals_per_second),
      sizes_(short_flows.sizes),
      arrivals_end_(short_flows.flow.stop),
      next_arrival_(short_flows.flow.start),
      arrival_random_(seed, RandomPurpose::short_flow_arrivals, index),
      size_random_(seed, RandomPurpose::short_flow_sizes, index),
      first_index_((index + 1) * kConnectionsPerEntry),
      seed_(seed),
      transfers_(&transfers) {
    flow_.controller_factory = factory_of(short_flows.flow);
    draw_next_arrival();
}

// The times between arrivals of a Poisson process are exponential, by the inverse of their distribution.
void ShortFlowSenders::draw_next_arrival() {
    const double seconds = -std::log1p(-arrival_random_.uniform()) / arrivals_per_second_;
    const double nanoseconds = seconds * 1e9;
    next_arrival_ = nanoseconds < static_cast<double>(arrivals_end_ - next_arrival_)
                        ? next_arrival_ + static_cast<Time>(nanoseconds)
                        : kNever;
}

void ShortFlowSenders::open(Time now) {
    if (free_slots_.empty()) {
        free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
        slots_.emplace_back();
        timers_.add();
    }
    const std::uint32_t number = free_slots_.back();
    free_slots_.pop_back();
    Slot& slot = slots_[number];
    slot.connection = transfers_->size();
    flow_.application.size_bytes = sizes_.draw(size_random_);
    slot.sender.emplace(flow_, first_index_ + slot.connection, seed_, now, slot.connection);
    transfers_->add({.start = now, .size_bytes = flow_.application.size_bytes}, number);
    timers_.set(number, now);
}

Receipt ShortFlowSenders::on_datagram(Time now, const DatagramView& datagram) {
    Destination destination;
    if (const ParseError error = read_destination(datagram, destination); error != ParseError::none)
        return {error};
    const std::uint64_t connection = connection_number(kClientConnectionId, destination.connection_id);
    if (connection >= transfers_->size()) return {};
    const std::uint32_t number = transfers_->slot(connection);
    Slot& slot = slots_[number];
    if (slot.connection != connection || slot.sender->closed()) return {};
    to_poll_ = number;
    return slot.sender->on_datagram(now, datagram);
}

void ShortFlowSenders::on_timeout(Time now) {
    if (next_arrival_ <= now) {
        draw_next_arrival();
        open(now);
        return;
    }
    to_poll_ = timers_.earliest_number();
    slots_[*to_poll_].sender->on_timeout(now);
}

bool ShortFlowSenders::poll_datagram(Time now, Datagram& out) {
    if (!to_poll_) return false;
    Sender& sender = *slots_[*to_poll_].sender;
    if (sender.poll_datagram(now, out)) return true;
    if (sender.closed()) {
        (*transfers_)[slots_[*to_poll_].connection].lost_packets = sender.lost_packets();
        timers_.set(*to_poll_, kNever);
        free_slots_.push_back(*to_poll_);
    } else {
        timers_.set(*to_poll_, sender.next_timeout());
    }
    to_poll_.reset();
    return false;
}

void ShortFlowSenders::update_records() const {
    for (const Slot& slot : slots_) (*transfers_)[slot.connection].lost_packets = slot.sender->lost_packets();
}

// ---- receivers -----------------------------------------------------------------------------

ShortFlowReceivers::ShortFlowReceivers(const ShortFlows& short_flows, TransferTable& transfers)
    : flow_(connection_of(short_flows)), transfers_(&transfers) {}

Receipt ShortFlowReceivers::on_datagram(Time now, const DatagramView& datagram) {
    ++received_packets_;
    received_bytes_ += datagram.size_bytes;
    Destination destination;
    if (const ParseError error = read_destination(datagram, destination); error != ParseError::none)
        return {error};
    const std::uint64_t connection = connection_number(kServerConnectionId, destination.connection_id);
    if (connection >= transfers_->size()) return {};
    const std::uint32_t number = transfers_->slot(connection);
    while (number >= slots_.size()) {
        slots_.emplace_back();
        timers_.add();
    }
    Slot& slot = slots_[number];
    if (!slot.receiver || slot.connection < connection) {
        if (destination.type != PacketType::initial) return {};  // of a connection that nobody has opened
        slot.connection = connection;
        slot.receiver.emplace(flow_, (*transfers_)[connection].start, nullptr, connection);
    } else if (slot.connection != connection) {
        return {};  // of one that has gone
    }
    to_poll_ = number;
    const Receipt receipt = slot.receiver->on_datagram(now, datagram);
    (*transfers_)[connection].completion = slot.receiver->completion();
    return receipt;
}

void ShortFlowReceivers::on_timeout(Time now) {
    to_poll_ = timers_.earliest_number();
    slots_[*to_poll_].receiver->on_timeout(now);
}

bool ShortFlowReceivers::poll_datagram(Time now, Datagram& out) {
    if (!to_poll_) return false;
    Receiver& receiver = *slots_[*to_poll_].receiver;
    if (receiver.poll_datagram(now, out)) return true;
    timers_.set(*to_poll_, receiver.next_timeout());
    to_poll_.reset();
    return false;
}

}  // namespace quicgym::quic
