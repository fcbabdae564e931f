// Several controllers on one connection, of which one is active, and which one may change at any
// time: what the IBCCA paper recommends for two of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "controllers/controller.hpp"
#include "sim/base/value_pointer.hpp"

namespace quicgym {

// All members hear of ACKs, losses and ECN marks, so that what they know of the path is current;
// only the active one's window and pacing rate are in force. Who is active, and by what rule, is
// the subclass's to say.
class Switching : public Controller {
public:
    struct Member {
        std::string name;  // in the catalogue
        ParameterValues parameters = {};
    };

    // The first one is active.
    Switching(const std::vector<Member>& members, std::uint64_t max_datagram_bytes);

    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override;
    void on_ack(const AckEvent& event) override;
    void on_packet_lost(const LostPacket& packet) override;
    void on_loss(const LossEvent& event) override;
    void on_persistent_congestion(Time now) override;
    void on_spurious_loss(Time now) override;
    void on_ecn(const EcnEvent& event) override;
    ControllerSnapshot snapshot() const override;

protected:
    // Hands the connection over; without effect when it is active already.
    void activate(std::size_t member);

private:
    void publish();

    std::vector<ValuePointer<Controller>> members_;
    std::size_t active_ = 0;
    Time sending_since_ = 0;  // the active one's first packet; kNever: there is none yet
};

}  // namespace quicgym
