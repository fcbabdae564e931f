#include "sim/quic/handshake.hpp"

#include "sim/quic/recovery/rtt_estimator.hpp"

namespace quicgym::quic {

namespace {

constexpr std::uint64_t kClientHelloBytes = 280;
constexpr std::uint64_t kServerHelloBytes = 900;  // without certificates: there is no cryptography

}  // namespace

bool Handshake::poll_datagram(Time now, Datagram& out) {
    if (!to_send_) return false;
    to_send_ = false;
    const std::uint64_t server_id = connection_id(kServerConnectionId, connection_);
    const std::uint64_t client_id = connection_id(kClientConnectionId, connection_);
    if (side_ == Side::client) {
        write_initial(out, server_id, client_id, next_number_++, acknowledged_, kClientHelloBytes);
    } else {
        write_initial(out, client_id, server_id, next_number_++, acknowledged_, kServerHelloBytes);
    }
    sent_time_ = now;
    // RFC 9002 6.2.2: before the first sample, from the initial RTT.
    deadline_ = now + RttEstimator().probe_timeout(0, timeouts_);
    return true;
}

}  // namespace quicgym::quic
