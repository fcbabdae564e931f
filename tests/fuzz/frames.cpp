// One datagram of any bytes: the headers and frames of RFC 9000 that our endpoints read.
#include "sim/quic/frames.hpp"

#include "tests/fuzz/input.hpp"

using namespace quicgym;
using fuzz::require;

namespace {

// The rules of accepted frames on which endpoints rely.
struct Checker : quic::FrameHandler {
    void on_ack(const quic::AckFrame& ack) {
        require(ack.range_count >= 1 && ack.range_count <= quic::kMaxAckRanges, "1 to 32 ranges");
        for (std::size_t i = 0; i < ack.range_count; ++i) {
            require(ack.ranges[i].smallest <= ack.ranges[i].largest, "a range is not empty");
            require(ack.ranges[i].largest <= quic::kMaxVarint, "a packet number has 62 bits");
            require(i == 0 || ack.ranges[i].largest + 1 < ack.ranges[i - 1].smallest,
                    "ranges descend and do not touch");
        }
    }
    void on_stream(const quic::StreamFrame& stream) {
        require(stream.offset <= quic::kMaxVarint - stream.length, "a stream ends below 2^62");
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::size_t implied_zeros = input.number(2);
    const std::uint64_t expected = input.number(4);
    const auto prefix = input.rest();
    const quic::DatagramView datagram{prefix.data(), prefix.size(), prefix.size() + implied_zeros};
    quic::Destination destination;
    (void)quic::read_destination(datagram, destination);
    if (datagram.size_bytes < quic::kTagBytes) return 0;
    quic::Reader reader(datagram, datagram.size_bytes - quic::kTagBytes);
    quic::PacketHeader header;
    if (quic::read_header(reader, header) != quic::ParseError::none) return 0;
    const std::uint64_t window = 1ULL << (8U * header.packet_number_bytes);
    const std::uint64_t number =
        quic::decode_packet_number(expected, header.truncated_packet_number, header.packet_number_bytes);
    require(number % window == header.truncated_packet_number, "a packet number ends as it was sent");
    Checker checker;
    quic::AckFrame ack;
    bool ack_eliciting = false;
    if (quic::read_frames(reader, header.type, checker, ack, ack_eliciting) == quic::ParseError::none) {
        require(reader.remaining() == 0, "a packet is read to its end");
    }
    return 0;
}
