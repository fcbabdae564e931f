// The common part of sender and receiver, and the one loop by which every host drives them.
//
// Endpoints are sans I/O: a host tells them the time, hands in datagrams, and carries away what they write.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/quic/datagram.hpp"
#include "sim/quic/frames.hpp"

namespace quicgym::quic {

// The result of reading a datagram.
struct Receipt {
    ParseError error = ParseError::none;
    std::uint64_t packet_number = kNoPacket;  // of a new, well-formed application-data packet
};

// Whatever happened at an endpoint, poll_datagram must follow until it returns false. Only then, and before
// anything has happened, next_timeout is valid; kNever: the endpoint waits for datagrams alone.
template <class T>
concept Endpoint =
    requires(T endpoint, const T& observed, Time now, const DatagramView& arrived, Datagram& outgoing) {
        { endpoint.on_datagram(now, arrived) } -> std::same_as<Receipt>;
        { endpoint.on_timeout(now) } -> std::same_as<void>;
        { endpoint.poll_datagram(now, outgoing) } -> std::same_as<bool>;
        { observed.next_timeout() } -> std::same_as<Time>;
    };

// A network as one endpoint sees it.
template <class T>
concept Host = requires(T host, Time now, const Receipt& receipt) {
    { host.next_arrival() } -> std::same_as<Time>;     // of a datagram; kNever: none is known
    { host.arrived() } -> std::same_as<DatagramView>;  // that datagram
    host.on_received(now, receipt);                    // the endpoint has read it
    { host.outgoing() } -> std::same_as<Datagram&>;    // room for the next datagram to send
    host.send(now);                                    // the endpoint has written it
};

// Runs the endpoint up to, and without, `end`. A timer that is due comes before a datagram of the same
// instant, and everything is sent before the next event. Two hosts that agree on when datagrams arrive
// therefore make an endpoint send the same datagrams at the same nanoseconds.
template <Endpoint E, Host H>
void drive(E& endpoint, H& host, Time end) {
    for (;;) {
        const Time timer = endpoint.next_timeout();
        const Time arrival = host.next_arrival();
        const Time now = std::min(timer, arrival);
        if (now >= end) return;
        if (arrival < timer) {
            host.on_received(now, endpoint.on_datagram(now, host.arrived()));
        } else {
            endpoint.on_timeout(now);
        }
        while (endpoint.poll_datagram(now, host.outgoing())) host.send(now);
    }
}

}  // namespace quicgym::quic
