// One side of the handshake of one round trip: an Initial packet, sent again with back-off until the peer
// has answered.
#pragma once

#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/quic/datagram.hpp"
#include "sim/quic/frames.hpp"

namespace quicgym::quic {

class Handshake {
public:
    enum class Side : std::uint8_t { client, server };

    Handshake(Side side, std::uint64_t connection) : connection_(connection), side_(side) {}

    // The Initial leaves at the next poll. A server's acknowledges the client's of that number.
    void send_initial(std::uint64_t acknowledged = kNoPacket) {
        acknowledged_ = acknowledged;
        to_send_ = true;
    }

    // When the Initial is to be sent again; kNever before it was sent. The end of the handshake is the
    // caller's to know.
    Time deadline() const { return deadline_; }
    void on_timeout(Time now) {
        if (deadline_ > now) return;
        to_send_ = true;
        ++timeouts_;
    }
    bool poll_datagram(Time now, Datagram& out);

    Time sent_time() const { return sent_time_; }                   // of the latest Initial
    std::uint64_t sent_number() const { return next_number_ - 1; }  // its number, once there is one
    // The RTT that an acknowledgement of that Initial shows. 0: none, since only the latest one has an
    // unambiguous send time.
    Time rtt_sample(Time now, std::uint64_t acknowledged) const {
        return acknowledged + 1 == next_number_ ? now - sent_time_ : 0;
    }
    std::uint64_t timeouts() const { return timeouts_; }

private:
    std::uint64_t connection_;
    std::uint64_t next_number_ = 0;
    std::uint64_t acknowledged_ = kNoPacket;
    Time sent_time_ = 0;
    Time deadline_ = kNever;
    std::uint32_t timeouts_ = 0;
    Side side_;
    bool to_send_ = false;
};

}  // namespace quicgym::quic
