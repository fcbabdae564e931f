#include "real/relay/port.hpp"

#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <netpacket/packet.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "sim/net/queues/discipline.hpp"
#include "sim/scenario.hpp"

namespace quicgym::relay {

namespace {

constexpr int kBufferBytes = 4 << 20;  // asked for; the kernel may give less
constexpr std::uint32_t kIpHeaderBytes = 20;

[[noreturn]] void fail_with(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in to_socket_address(const Address& address) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = htons(address.port);
    if (inet_pton(AF_INET, address.host.c_str(), &result.sin_addr) != 1)
        throw std::invalid_argument("\"" + address.host + "\" is not an IPv4 address such as 127.0.0.1");
    return result;
}

void set_option(int socket, int level, int option, int value, const char* name) {
    if (setsockopt(socket, level, option, &value, sizeof value) != 0) fail_with(name);
}

// Hash of addresses, protocol and ports (RFC 8290, section 4.1): FNV-1a.
std::uint32_t flow_of(const HeldPacket& packet) {
    std::uint32_t hash = 2166136261U;
    const auto add = [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end && i < packet.bytes; ++i)
            hash = (hash ^ packet.content[i]) * 16777619U;
    };
    add(9, 10);
    add(12, 20);
    const std::uint8_t protocol = packet.content[9];
    const std::size_t header = std::size_t{4} * (packet.content[0] & 15);
    if (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP) add(header, header + 4);
    return hash;
}

// RFC 1624: the checksum with the second 16 bits of the header changed by ECN.
void set_ecn(HeldPacket& packet, quic::Ecn ecn) {
    std::uint8_t* const header = packet.content;
    const auto word = [&](std::size_t at) {
        return static_cast<std::uint32_t>(header[at] << 8 | header[at + 1]);
    };
    const std::uint32_t before = word(0);
    header[1] = static_cast<std::uint8_t>((header[1] & ~3) | static_cast<std::uint8_t>(ecn));
    std::uint32_t sum = (~word(10) & 0xffff) + (~before & 0xffff) + word(0);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
    header[10] = static_cast<std::uint8_t>(sum >> 8);
    header[11] = static_cast<std::uint8_t>(sum);
}

}  // namespace

Port Port::udp(const Address& local, const std::optional<Address>& peer) {
    const sockaddr_in address = to_socket_address(local);
    const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) fail_with("socket");
    Port port(descriptor, true);
    if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        fail_with("bind to " + local.host + ":" + std::to_string(local.port));
    set_option(descriptor, IPPROTO_IP, IP_RECVTOS, 1, "IP_RECVTOS");
    port.set_options();
    if (peer) port.connect(*peer);
    return port;
}

Port Port::packets(int socket, int interface, const std::array<std::uint8_t, 6>& host) {
    Port port(socket, false);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(0x0800);
    address.sll_ifindex = interface;
    if (bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        fail_with("bind to interface " + std::to_string(interface));
    port.set_options();
    address.sll_halen = static_cast<unsigned char>(host.size());
    std::memcpy(address.sll_addr, host.data(), host.size());
    std::memcpy(&port.peer_, &address, sizeof address);
    port.peer_length_ = sizeof address;
    port.knows_peer_ = true;
    return port;
}

Port::Port(Port&& other) noexcept
    : socket_(other.socket_),
      is_udp_(other.is_udp_),
      knows_peer_(other.knows_peer_),
      peer_(other.peer_),
      peer_length_(other.peer_length_),
      errors_(other.errors_) {
    other.socket_ = -1;
}

Port::~Port() {
    if (socket_ >= 0) close(socket_);
}

void Port::set_options() {
    set_option(socket_, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
    set_option(socket_, SOL_SOCKET, SO_RCVBUF, kBufferBytes, "SO_RCVBUF");
    set_option(socket_, SOL_SOCKET, SO_SNDBUF, kBufferBytes, "SO_SNDBUF");
    // Past the limit of the system, where the relay may.
    const int bytes = kBufferBytes;
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
}

void Port::connect(const Address& peer) {
    if (!connect_to(to_socket_address(peer)))
        fail_with("connect " + local().host + " to " + peer.host + ":" + std::to_string(peer.port));
}

bool Port::connect_to(const sockaddr_in& peer) {
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) return false;
    std::memcpy(&peer_, &peer, sizeof peer);
    peer_length_ = sizeof peer;
    knows_peer_ = true;
    return true;
}

void Port::fail(int error) {
    if (error == ECONNREFUSED) {
        ++errors_.refused;
        return;
    }
    ++errors_.errors;
    errors_.last_error = error;
}

Address Port::local() const {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    if (getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) fail_with("getsockname");
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    return {text, ntohs(address.sin_port)};
}

std::uint64_t Port::kernel_drops() const {
    std::uint32_t counts[SK_MEMINFO_VARS] = {};
    socklen_t length = sizeof counts;
    if (getsockopt(socket_, SOL_SOCKET, SO_MEMINFO, counts, &length) != 0) return 0;
    return counts[SK_MEMINFO_DROPS];
}

void Port::receive(PacketPool& pool, std::vector<ReceivedPacket>& received) {
    std::array<mmsghdr, kBatch> messages;
    std::array<iovec, kBatch> pieces;
    std::array<sockaddr_in, kBatch> sources;
    std::array<std::uint32_t, kBatch> numbers;
    struct alignas(cmsghdr) Control {
        std::uint8_t bytes[128];
    };
    std::array<Control, kBatch> controls;
    HeldPacket spare;  // what there is no room for is read all the same: it must not wait in the kernel

    timespec began;
    clock_gettime(CLOCK_REALTIME, &began);
    for (;;) {
        for (std::size_t i = 0; i < kBatch; ++i) {
            numbers[i] = pool.take();
            pieces[i] = {(numbers[i] == kNoRoom ? spare : pool[numbers[i]]).content, kMostPacketBytes};
            msghdr& header = messages[i].msg_hdr;
            header = {};
            if (is_udp_) {
                header.msg_name = &sources[i];
                header.msg_namelen = sizeof sources[i];
            }
            header.msg_iov = &pieces[i];
            header.msg_iovlen = 1;
            header.msg_control = controls[i].bytes;
            header.msg_controllen = sizeof controls[i].bytes;
        }
        const int count = recvmmsg(socket_, messages.data(), kBatch, MSG_DONTWAIT, nullptr);
        const std::size_t got = count > 0 ? static_cast<std::size_t>(count) : 0;
        if (count < 0 && errno != EAGAIN && errno != EINTR) fail(errno);
        bool is_flood = false;
        for (std::size_t i = 0; i < kBatch; ++i) {
            ReceivedPacket next{numbers[i], {}, 0, 0, quic::Ecn::not_ect};
            if (i < got && accept(messages[i].msg_hdr, sources[i], messages[i].msg_len, pool, next)) {
                received.push_back(next);
            } else if (numbers[i] != kNoRoom) {
                pool.give_back(numbers[i]);
            }
            is_flood |= next.stamp.tv_sec != began.tv_sec ? next.stamp.tv_sec > began.tv_sec
                                                          : next.stamp.tv_nsec > began.tv_nsec;
        }
        if (got < kBatch || is_flood) return;
    }
}

// Completes `next`, a packet that the socket has received. Returns whether it is one of the host's.
bool Port::accept(const msghdr& header, const sockaddr_in& source, std::uint32_t bytes, PacketPool& pool,
                  ReceivedPacket& next) {
    bool has_stamp = false;
    for (const cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
         control = CMSG_NXTHDR(const_cast<msghdr*>(&header), const_cast<cmsghdr*>(control))) {
        if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_TIMESTAMPNS) {
            std::memcpy(&next.stamp, CMSG_DATA(control), sizeof next.stamp);
            has_stamp = true;
        } else if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TOS) {
            next.ecn = static_cast<quic::Ecn>(*CMSG_DATA(control) & 3);
        }
    }
    if ((header.msg_flags & MSG_TRUNC) != 0) {
        ++errors_.oversized;
        return false;
    }
    if (is_udp_) {
        if (!knows_peer_ && !connect_to(source)) fail(errno);
        const auto& peer = reinterpret_cast<const sockaddr_in&>(peer_);
        if (!knows_peer_ || source.sin_port != peer.sin_port ||
            source.sin_addr.s_addr != peer.sin_addr.s_addr) {
            ++errors_.foreign;
            return false;
        }
    }
    if (!has_stamp) {
        fail(ENODATA);
        return false;
    }
    if (next.number == kNoRoom) {
        ++errors_.overflow;
        return false;
    }
    HeldPacket& packet = pool[next.number];
    packet.bytes = bytes;
    if (is_udp_) {
        next.wire_bytes = bytes + static_cast<std::uint32_t>(kLinkBytes);
        return true;
    }
    if (bytes < kIpHeaderBytes || packet.content[0] >> 4 != 4) {
        ++errors_.foreign;
        return false;
    }
    next.wire_bytes = bytes + static_cast<std::uint32_t>(net::kFramingBytes);
    next.ecn = static_cast<quic::Ecn>(packet.content[1] & 3);
    next.queue_flow = flow_of(packet);
    return true;
}

bool Port::send(HeldPacket& packet, quic::Ecn ecn) {
    if (!knows_peer_) {
        fail(EDESTADDRREQ);
        return false;
    }
    iovec piece{packet.content, packet.bytes};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    struct alignas(cmsghdr) Control {
        std::uint8_t bytes[CMSG_SPACE(sizeof(int))];
    } control{};
    if (!is_udp_) {
        header.msg_name = &peer_;
        header.msg_namelen = peer_length_;
        if (ecn != static_cast<quic::Ecn>(packet.content[1] & 3)) set_ecn(packet, ecn);
    } else if (ecn != quic::Ecn::not_ect) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        cmsghdr* const tos = CMSG_FIRSTHDR(&header);
        tos->cmsg_level = IPPROTO_IP;
        tos->cmsg_type = IP_TOS;
        tos->cmsg_len = CMSG_LEN(sizeof(int));
        const int value = static_cast<int>(ecn);
        std::memcpy(CMSG_DATA(tos), &value, sizeof value);
    }
    if (sendmsg(socket_, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
    fail(errno);
    return false;
}

}  // namespace quicgym::relay
