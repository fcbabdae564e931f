#include "sim/quic/frames.hpp"

namespace quicgym::quic {

namespace {

constexpr std::uint64_t kVersion1 = 1;
constexpr std::uint8_t kInitialFirstByte = 0xc0;

}  // namespace

const char* describe(ParseError error) {
    switch (error) {
        case ParseError::none:
            return "no error";
        case ParseError::truncated:
            return "the datagram ends inside a field";
        case ParseError::fixed_bit_is_zero:
            return "the fixed bit of the first byte is 0";
        case ParseError::unsupported_packet_type:
            return "a long header that is not an Initial packet";
        case ParseError::unsupported_version:
            return "a version other than 1";
        case ParseError::connection_id_length:
            return "a connection id that is not eight bytes long";
        case ParseError::packet_length:
            return "the Length field does not match the datagram";
        case ParseError::no_frames:
            return "a packet without frames";
        case ParseError::unsupported_frame_type:
            return "a frame type that this endpoint does not use";
        case ParseError::frame_not_allowed:
            return "a frame that an Initial packet may not carry";
        case ParseError::acknowledgement_range:
            return "an ACK range below packet number 0";
        case ParseError::stream_offset:
            return "stream data beyond offset 2^62 - 1";
    }
    return "unknown error";
}

ParseError read_destination(const DatagramView& datagram, Destination& destination) {
    Reader reader(datagram, datagram.size_bytes);
    std::uint8_t first = 0;
    if (!reader.byte(first)) return ParseError::truncated;
    destination.type = (first & 0x80U) != 0 ? PacketType::initial : PacketType::one_rtt;
    if (destination.type == PacketType::initial) {
        std::uint8_t length = 0;
        if (!reader.skip(4) || !reader.byte(length)) return ParseError::truncated;
        if (length != kConnectionIdBytes) return ParseError::connection_id_length;
    }
    if (!reader.big_endian(destination.connection_id, kConnectionIdBytes)) return ParseError::truncated;
    return ParseError::none;
}

ParseError read_long_header(Reader& reader, PacketHeader& header, std::uint8_t first_byte) {
    header.type = PacketType::initial;
    if ((first_byte & 0x30U) != 0) return ParseError::unsupported_packet_type;
    std::uint64_t version = 0;
    if (!reader.big_endian(version, 4)) return ParseError::truncated;
    if (version != kVersion1) return ParseError::unsupported_version;
    for (int connection_id = 0; connection_id < 2; ++connection_id) {
        std::uint8_t length = 0;
        if (!reader.byte(length)) return ParseError::truncated;
        if (length != kConnectionIdBytes) return ParseError::connection_id_length;
        if (!reader.skip(length)) return ParseError::truncated;
    }
    std::uint64_t token_bytes = 0;
    std::uint64_t length = 0;
    if (!reader.varint(token_bytes) || !reader.skip(token_bytes) || !reader.varint(length))
        return ParseError::truncated;
    // The reader ends before the tag, which Length counts; nothing may follow the packet.
    if (length != reader.remaining() + kTagBytes) return ParseError::packet_length;
    if (!reader.big_endian(header.truncated_packet_number, header.packet_number_bytes))
        return ParseError::truncated;
    return reader.remaining() == 0 ? ParseError::no_frames : ParseError::none;
}

ParseError read_ack_frame(Reader& reader, bool with_ecn, AckFrame& ack) {
    std::uint64_t largest = 0;
    std::uint64_t range_count = 0;
    std::uint64_t length = 0;
    if (!reader.varint(largest) || !reader.varint(ack.delay) || !reader.varint(range_count) ||
        !reader.varint(length)) {
        return ParseError::truncated;
    }
    if (length > largest) return ParseError::acknowledgement_range;
    ack.ranges[0] = {largest - length, largest};
    ack.range_count = 1;
    std::uint64_t smallest = largest - length;
    for (std::uint64_t i = 0; i < range_count; ++i) {
        std::uint64_t gap = 0;
        if (!reader.varint(gap) || !reader.varint(length)) return ParseError::truncated;
        // RFC 9000 19.3.1: the next range ends gap + 2 below the smallest of the one before it.
        if (gap + 2 > smallest || length > smallest - gap - 2) return ParseError::acknowledgement_range;
        const std::uint64_t range_largest = smallest - gap - 2;
        smallest = range_largest - length;
        if (ack.range_count < kMaxAckRanges) ack.ranges[ack.range_count++] = {smallest, range_largest};
    }
    ack.has_ecn = with_ecn;
    if (with_ecn &&
        (!reader.varint(ack.ecn.ect_0) || !reader.varint(ack.ecn.ect_1) || !reader.varint(ack.ecn.ce))) {
        return ParseError::truncated;
    }
    return ParseError::none;
}

ParseError read_connection_close(Reader& reader, bool application, std::uint64_t& error_code) {
    std::uint64_t frame = 0;
    std::uint64_t reason_bytes = 0;
    if (!reader.varint(error_code) || (!application && !reader.varint(frame)) ||
        !reader.varint(reason_bytes) || !reader.skip(reason_bytes)) {
        return ParseError::truncated;
    }
    return ParseError::none;
}

void write_initial(Datagram& datagram, std::uint64_t destination_id, std::uint64_t source_id,
                   std::uint64_t packet_number, std::uint64_t acknowledged, std::uint64_t crypto_bytes) {
    Writer writer(datagram);
    const std::size_t number_bytes = packet_number_bytes(packet_number + 1);
    writer.byte(static_cast<std::uint8_t>(kInitialFirstByte | (number_bytes - 1)));
    writer.big_endian(kVersion1, 4);
    writer.byte(kConnectionIdBytes);
    writer.big_endian(destination_id, kConnectionIdBytes);
    writer.byte(kConnectionIdBytes);
    writer.big_endian(source_id, kConnectionIdBytes);
    writer.varint(0);  // no token
    // Both sides pad to the smallest datagram that every path must carry; Length takes two bytes.
    writer.varint(kInitialDatagramBytes - writer.position() - 2);
    writer.big_endian(packet_number, number_bytes);
    if (acknowledged != kNoPacket) {
        writer.byte(frame_type::ack);
        writer.varint(acknowledged);
        writer.varint(0);  // delay
        writer.varint(0);  // no further ranges
        writer.varint(0);  // one packet
    }
    writer.byte(frame_type::crypto);
    writer.varint(0);
    writer.varint(crypto_bytes);
    datagram.prefix_bytes = static_cast<std::uint8_t>(writer.position());
    datagram.size_bytes = kInitialDatagramBytes;
    datagram.ecn = Ecn::not_ect;
    datagram.sealed_number = static_cast<std::uint32_t>(packet_number);
}

}  // namespace quicgym::quic
