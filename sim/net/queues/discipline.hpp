// What decides which packet of a queue is next, and which are dropped or marked. A discipline is one
// file in this folder, which ends with a RegisteredDiscipline, and nothing else names it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/queue_disciplines.hpp"
#include "sim/quic/datagram.hpp"
#include "sim/scenario.hpp"

namespace quicgym::net {

struct QueuedPacket {
    Time arrival;
    std::uint64_t position;  // in its flow's ring
    std::uint32_t flow;
    std::uint32_t bytes;  // of the IPv4 packet
    quic::Ecn ecn;
};

// RFC 9331, section 5.1: what a queue for L4S treats as such.
inline bool is_l4s(quic::Ecn ecn) {
    return ecn == quic::Ecn::ect_1 || ecn == quic::Ecn::ce;
}

inline constexpr std::uint64_t kFramingBytes = kLinkBytes - kUdpIpBytes;

class QueueDiscipline {
public:
    explicit QueueDiscipline(const Link& link)
        : limit_(link.queue_limit),
          limit_in_packets_(link.queue_unit == QueueUnit::packets),
          marks_(link.ecn_marking) {}
    virtual ~QueueDiscipline() = default;
    QueueDiscipline& operator=(const QueueDiscipline&) = delete;
    virtual std::unique_ptr<QueueDiscipline> clone() const = 0;

    // Takes a packet in, at its arrival, or drops it.
    virtual void enqueue(QueuedPacket packet) = 0;
    // Takes the next packet to be transmitted out; false: there is none.
    virtual bool dequeue(Time now, QueuedPacket& packet) = 0;

    std::uint64_t packets() const { return packets_; }
    std::uint64_t bytes() const { return bytes_; }
    // The packets that the last calls dropped; the caller clears the list.
    std::vector<QueuedPacket>& dropped() { return dropped_; }

protected:
    QueueDiscipline(const QueueDiscipline&) = default;  // for clone()

    bool limit_in_packets() const { return limit_in_packets_; }
    std::uint64_t limit() const { return limit_; }
    bool has_room_for(const QueuedPacket& packet) const {
        return (limit_in_packets_ ? packets_ + 1 : bytes_ + packet.bytes) <= limit_;
    }
    void count_in(const QueuedPacket& packet) {
        ++packets_;
        bytes_ += packet.bytes;
    }
    void count_out(const QueuedPacket& packet) {
        --packets_;
        bytes_ -= packet.bytes;
    }
    void drop(const QueuedPacket& packet) { dropped_.push_back(packet); }
    // RFC 3168, section 5: congestion is told to whom it can be told without a loss.
    bool mark(QueuedPacket& packet) const {
        if (!marks_ || packet.ecn == quic::Ecn::not_ect) return false;
        packet.ecn = quic::Ecn::ce;
        return true;
    }

private:
    std::uint64_t limit_;
    bool limit_in_packets_;
    bool marks_;
    std::uint64_t packets_ = 0;
    std::uint64_t bytes_ = 0;
    std::vector<QueuedPacket> dropped_;
};

struct DisciplineSettings {
    const Link& link;
    std::uint64_t largest_packet_bytes;  // of any flow, IPv4 header included
    std::uint64_t seed;
    std::uint64_t stream;  // of random numbers; each direction has its own
};

// Makes the discipline of a link that check_queue accepts. Throws std::invalid_argument for drop-tail, which
// needs none.
std::unique_ptr<QueueDiscipline> make_discipline(const DisciplineSettings& settings);

template <class Class>
std::unique_ptr<QueueDiscipline> make_discipline_of(const DisciplineSettings& settings) {
    return std::make_unique<Class>(settings);
}

}  // namespace quicgym::net
