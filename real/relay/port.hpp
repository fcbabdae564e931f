// Where a host meets the relay: a socket that takes its packets, with the kernel's time of each, and gives it
// those that are for it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "real/relay/packet_pool.hpp"
#include "sim/quic/datagram.hpp"

namespace quicgym::relay {

struct Address {
    std::string host;  // numeric, IPv4
    std::uint16_t port;
};

struct PortErrors {
    std::uint64_t refused = 0;  // calls after the host has closed its socket
    std::uint64_t errors = 0;   // other errors of the socket's calls
    int last_error = 0;         // errno
    std::uint64_t foreign = 0;  // datagrams of others than the host, which are ignored
    std::uint64_t oversized = 0;
    std::uint64_t overflow = 0;  // datagrams for which the pool had no room
};

struct ReceivedPacket {
    std::uint32_t number;  // in the pool
    timespec stamp;        // time of day
    std::uint32_t wire_bytes;
    std::uint32_t queue_flow;  // of IP packets a hash of addresses and ports, otherwise 0
    quic::Ecn ecn;
};

class Port {
public:
    // A UDP socket of a host's own. The host is `peer`, or else that of connect(), or else whoever sends a
    // datagram first. Throws std::system_error.
    static Port udp(const Address& local, const std::optional<Address>& peer);
    // A packet socket of IPv4 packets on one end of a virtual Ethernet; takes the socket over. The host has
    // the other end, whose hardware address is `host`.
    static Port packets(int socket, int interface, const std::array<std::uint8_t, 6>& host);

    Port(Port&& other) noexcept;
    Port& operator=(Port&&) = delete;
    ~Port();

    // Takes datagrams of this host alone from now on. Throws std::system_error where it cannot be reached.
    void connect(const Address& peer);

    // Adds what has come before this call to `received`, without waiting. Some of what comes during the call
    // may be added as well, but a flood does not keep it from returning.
    void receive(PacketPool& pool, std::vector<ReceivedPacket>& received);
    // Whether it left.
    bool send(HeldPacket& packet, quic::Ecn ecn);

    int descriptor() const { return socket_; }
    Address local() const;
    const PortErrors& errors() const { return errors_; }
    // How many packets the kernel has dropped on arrival so far, the number that SO_RXQ_OVFL counts.
    std::uint64_t kernel_drops() const;

private:
    static constexpr std::size_t kBatch = 32;

    Port(int socket, bool is_udp) : socket_(socket), is_udp_(is_udp) {}
    void set_options();
    bool connect_to(const sockaddr_in& peer);
    void fail(int error);
    bool accept(const msghdr& header, const sockaddr_in& source, std::uint32_t bytes, PacketPool& pool,
                ReceivedPacket& next);

    int socket_;
    bool is_udp_;
    bool knows_peer_ = false;
    sockaddr_storage peer_{};
    socklen_t peer_length_ = 0;
    PortErrors errors_;
};

}  // namespace quicgym::relay
