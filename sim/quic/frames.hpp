// RFC 9000 sections 17 and 19: the packets and frames that our endpoints exchange.
//
// Whatever is read here came from a network and may be anything: each rule of the RFC that a reader
// relies on is checked, and a violation is an error value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/quic/datagram.hpp"
#include "sim/quic/wire.hpp"

namespace quicgym::quic {

enum class ParseError : std::uint8_t {
    none,
    truncated,                // the datagram ends inside a field
    fixed_bit_is_zero,        // RFC 9000 17.2, 17.3
    unsupported_packet_type,  // long headers other than Initial
    unsupported_version,      // other than version 1
    connection_id_length,     // other than eight bytes
    packet_length,            // Initial's Length field does not match the datagram
    no_frames,                // RFC 9000 12.4
    unsupported_frame_type,
    frame_not_allowed,      // RFC 9000 12.4: application frames in an Initial packet
    acknowledgement_range,  // RFC 9000 19.3.1: a range below packet number 0
    stream_offset,          // RFC 9000 19.8: beyond 2^62 - 1
};

const char* describe(ParseError error);

enum class PacketType : std::uint8_t { initial, one_rtt };

struct PacketHeader {
    PacketType type = PacketType::one_rtt;
    std::uint8_t packet_number_bytes = 0;
    std::uint64_t truncated_packet_number = 0;
};

inline constexpr std::size_t kMaxAckRanges = 32;

struct AckRange {
    std::uint64_t smallest;
    std::uint64_t largest;
};

struct EcnCounts {
    std::uint64_t ect_0 = 0;
    std::uint64_t ect_1 = 0;
    std::uint64_t ce = 0;
};

// RFC 9000 19.3. Ranges descend; of a longer list the highest kMaxAckRanges are kept.
struct AckFrame {
    std::uint64_t delay = 0;  // in units of 2^ack_delay_exponent µs
    std::size_t range_count = 0;
    std::array<AckRange, kMaxAckRanges> ranges;
    bool has_ecn = false;
    EcnCounts ecn;
};

struct StreamFrame {
    std::uint64_t stream_id = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    bool fin = false;
    std::uint64_t requested_bytes = 0;  // of the request stream
};

inline constexpr std::uint64_t kAckDelayExponent = 3;  // RFC 9000 18.2, the default
inline constexpr std::uint64_t kStreamId = 2;          // client-initiated, unidirectional
inline constexpr std::uint64_t kBurstStreamId = 6;     // the second of these, which only bursts use
// Server-initiated, unidirectional. A STREAM frame of it begins with the response bytes asked for so far,
// kRequestBytes long; the rest of a request is not looked at.
inline constexpr std::uint64_t kRequestStreamId = 3;
inline constexpr std::size_t kRequestBytes = 8;

// Both ends of a pair of hosts number their connections from 0; the ids of a connection follow from its
// number.
inline constexpr std::uint64_t kServerConnectionId = 0x5155494347594d31;  // of the first connection
inline constexpr std::uint64_t kClientConnectionId = 0x5155494347594d32;
inline constexpr std::uint64_t connection_id(std::uint64_t of_first, std::uint64_t number) {
    return of_first + (number << 8);
}
inline constexpr std::uint64_t connection_number(std::uint64_t of_first, std::uint64_t id) {
    return (id - of_first) >> 8;
}

namespace frame_type {
inline constexpr std::uint8_t padding = 0x00;
inline constexpr std::uint8_t ping = 0x01;
inline constexpr std::uint8_t ack = 0x02;
inline constexpr std::uint8_t ack_ecn = 0x03;
inline constexpr std::uint8_t crypto = 0x06;
inline constexpr std::uint8_t stream = 0x08;  // to 0x0f
inline constexpr std::uint8_t stream_fin = 0x01;
inline constexpr std::uint8_t stream_length = 0x02;
inline constexpr std::uint8_t stream_offset = 0x04;
inline constexpr std::uint8_t max_data = 0x10;
inline constexpr std::uint8_t max_stream_data = 0x11;
inline constexpr std::uint8_t data_blocked = 0x14;
inline constexpr std::uint8_t stream_data_blocked = 0x15;
inline constexpr std::uint8_t connection_close = 0x1c;
inline constexpr std::uint8_t application_close = 0x1d;
inline constexpr std::uint8_t handshake_done = 0x1e;
// Ours, in place of STREAM frames: several chunks, as the content that would part their headers is not
// stored.
inline constexpr std::uint8_t stream_chunks = 0x2f;
}  // namespace frame_type

// The destination of a datagram (RFC 9000 5.2) with the type of its packet, for a host of several
// connections.
struct Destination {
    PacketType type = PacketType::one_rtt;
    std::uint64_t connection_id = 0;
};
ParseError read_destination(const DatagramView& datagram, Destination& destination);

// Reads the header and leaves the reader at the first frame; the reader must end before the tag.
ParseError read_long_header(Reader& reader, PacketHeader& header, std::uint8_t first_byte);

inline ParseError read_header(Reader& reader, PacketHeader& header) {
    std::uint8_t first = 0;
    if (!reader.byte(first)) return ParseError::truncated;
    if ((first & 0x40U) == 0) return ParseError::fixed_bit_is_zero;
    header.packet_number_bytes = static_cast<std::uint8_t>((first & 0x03U) + 1);
    if ((first & 0x80U) != 0) return read_long_header(reader, header, first);
    header.type = PacketType::one_rtt;
    if (!reader.skip(kConnectionIdBytes)) return ParseError::truncated;
    if (!reader.big_endian(header.truncated_packet_number, header.packet_number_bytes))
        return ParseError::truncated;
    return reader.remaining() == 0 ? ParseError::no_frames : ParseError::none;
}

// Whether AEAD would open a 1-RTT packet under this number. Not where the packet came so late that its
// truncated number was taken for that of a later one.
constexpr bool opens(const DatagramView& datagram, std::uint64_t packet_number) {
    return datagram.sealed_number == static_cast<std::uint32_t>(packet_number);
}

// The functions that read_frames calls. An endpoint hides those that it needs by its own; they are not
// virtual, because read_frames is a template.
struct FrameHandler {
    void on_ping() {}
    void on_ack(const AckFrame&) {}
    void on_crypto(std::uint64_t /*offset*/, std::uint64_t /*length*/) {}
    void on_stream(const StreamFrame&) {}
    void on_max_data(std::uint64_t /*limit*/) {}
    void on_max_stream_data(std::uint64_t /*stream_id*/, std::uint64_t /*limit*/) {}
    void on_data_blocked(std::uint64_t /*limit*/) {}
    void on_stream_data_blocked(std::uint64_t /*stream_id*/, std::uint64_t /*limit*/) {}
    void on_connection_close(std::uint64_t /*error_code*/) {}
    void on_handshake_done() {}
};

ParseError read_ack_frame(Reader& reader, bool with_ecn, AckFrame& ack);
ParseError read_connection_close(Reader& reader, bool application, std::uint64_t& error_code);

// Almost every data packet needs this, so it is always inlined; compilers would judge it too long.
[[gnu::always_inline]] inline ParseError read_stream_frame(Reader& reader, std::uint8_t type,
                                                           StreamFrame& stream) {
    if (!reader.varint(stream.stream_id)) return ParseError::truncated;
    stream.offset = 0;
    if ((type & frame_type::stream_offset) != 0 && !reader.varint(stream.offset))
        return ParseError::truncated;
    stream.length = reader.remaining();
    if ((type & frame_type::stream_length) != 0 && !reader.varint(stream.length))
        return ParseError::truncated;
    if (stream.stream_id == kRequestStreamId) {
        Reader content = reader;
        if (stream.length < kRequestBytes || !content.big_endian(stream.requested_bytes, kRequestBytes))
            return ParseError::truncated;
    }
    if (!reader.skip(stream.length)) return ParseError::truncated;
    if (stream.offset + stream.length > kMaxVarint) return ParseError::stream_offset;
    stream.fin = (type & frame_type::stream_fin) != 0;
    return ParseError::none;
}

// The number of chunks; offset, length and FIN bit of each; their content.
template <class Handler>
[[gnu::cold, gnu::noinline]] ParseError read_stream_chunks(Reader& reader, Handler& handler) {
    std::uint64_t count = 0;
    std::uint64_t content = 0;
    if (!reader.varint(count)) return ParseError::truncated;
    for (; count > 0; --count) {
        StreamFrame stream;
        std::uint64_t length_and_fin = 0;
        if (!reader.varint(stream.offset) || !reader.varint(length_and_fin)) return ParseError::truncated;
        stream.stream_id = kStreamId;
        stream.length = length_and_fin >> 1;
        stream.fin = (length_and_fin & 1U) != 0;
        content += stream.length;
        if (content > reader.remaining()) return ParseError::truncated;
        if (stream.offset + stream.length > kMaxVarint) return ParseError::stream_offset;
        handler.on_stream(stream);
    }
    return reader.skip(content) ? ParseError::none : ParseError::truncated;
}

// Hands every frame of the packet to the handler, in order. `ack` is scratch space for ACK frames.
// Sets ack_eliciting as RFC 9002 section 2 defines it.
template <class Handler>
ParseError read_frames(Reader& reader, PacketType packet, Handler& handler, AckFrame& ack,
                       bool& ack_eliciting) {
    ack_eliciting = false;
    while (reader.remaining() > 0) {
        std::uint8_t type = 0;
        if (!reader.byte(type)) return ParseError::truncated;
        const bool is_stream = (type & 0xf8U) == frame_type::stream;
        if (packet == PacketType::initial && (is_stream || type > frame_type::crypto) &&
            type != frame_type::connection_close) {
            return ParseError::frame_not_allowed;
        }
        if (is_stream) {
            StreamFrame stream;
            if (const ParseError error = read_stream_frame(reader, type, stream); error != ParseError::none)
                return error;
            handler.on_stream(stream);
            ack_eliciting = true;
            continue;
        }
        std::uint64_t first = 0;
        std::uint64_t second = 0;
        switch (type) {
            case frame_type::padding:
                reader.skip_zeros();
                continue;
            case frame_type::ack:
            case frame_type::ack_ecn:
                if (const ParseError error = read_ack_frame(reader, type == frame_type::ack_ecn, ack);
                    error != ParseError::none) {
                    return error;
                }
                handler.on_ack(ack);
                continue;
            case frame_type::connection_close:
            case frame_type::application_close:
                if (const ParseError error =
                        read_connection_close(reader, type == frame_type::application_close, first);
                    error != ParseError::none) {
                    return error;
                }
                handler.on_connection_close(first);
                continue;
            case frame_type::ping:
                handler.on_ping();
                break;
            case frame_type::crypto:
                if (!reader.varint(first) || !reader.varint(second) || !reader.skip(second))
                    return ParseError::truncated;
                if (first + second > kMaxVarint) return ParseError::stream_offset;
                handler.on_crypto(first, second);
                break;
            case frame_type::max_data:
                if (!reader.varint(first)) return ParseError::truncated;
                handler.on_max_data(first);
                break;
            case frame_type::max_stream_data:
                if (!reader.varint(first) || !reader.varint(second)) return ParseError::truncated;
                handler.on_max_stream_data(first, second);
                break;
            case frame_type::data_blocked:
                if (!reader.varint(first)) return ParseError::truncated;
                handler.on_data_blocked(first);
                break;
            case frame_type::stream_data_blocked:
                if (!reader.varint(first) || !reader.varint(second)) return ParseError::truncated;
                handler.on_stream_data_blocked(first, second);
                break;
            case frame_type::handshake_done:
                handler.on_handshake_done();
                break;
            case frame_type::stream_chunks:
                if (const ParseError error = read_stream_chunks(reader, handler); error != ParseError::none)
                    return error;
                break;
            default:
                return ParseError::unsupported_frame_type;
        }
        ack_eliciting = true;
    }
    return ParseError::none;
}

// RFC 9000 17.3.1. Returns the bytes written.
inline void write_short_header(Writer& writer, std::uint64_t connection_id, std::uint64_t packet_number,
                               std::size_t number_bytes) {
    writer.byte(static_cast<std::uint8_t>(0x40U | (number_bytes - 1)));
    writer.big_endian(connection_id, kConnectionIdBytes);
    writer.big_endian(packet_number, number_bytes);
}

// An Initial packet (17.2.2) with a CRYPTO frame and, for a server, an ACK frame of one packet.
inline constexpr std::size_t kInitialDatagramBytes = 1200;  // RFC 9000 14.1
inline constexpr std::uint64_t kNoPacket = UINT64_MAX;
void write_initial(Datagram& datagram, std::uint64_t destination_id, std::uint64_t source_id,
                   std::uint64_t packet_number, std::uint64_t acknowledged, std::uint64_t crypto_bytes);

}  // namespace quicgym::quic
