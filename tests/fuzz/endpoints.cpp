// A sender and a receiver with a network between them that loses, repeats, damages and makes up datagrams.
#include <cmath>
#include <deque>
#include <vector>

#include "controllers/catalogue.hpp"
#include "sim/quic/client.hpp"
#include "sim/quic/receiver.hpp"
#include "sim/quic/sender.hpp"
#include "tests/fuzz/input.hpp"

using namespace quicgym;
using fuzz::require;

namespace {

constexpr int kMostSteps = 300;
constexpr int kMostAtOnce = 100'000;        // datagrams or timeouts of one moment: beyond, it would not end
constexpr std::size_t kMostUnderWay = 256;  // in each direction; what comes beyond is lost
constexpr Time kLongest = 3600 * kSecond;   // statistics are kept for each moment of a connection

Flow make_flow(fuzz::Input& input) {
    const auto& names = baselines();
    const std::uint8_t flags = input.byte();
    Flow flow;
    flow.name = "flow";
    flow.controller = names[input.byte() % names.size()];
    flow.ecn = (flags & 1U) != 0;
    flow.burst_retransmission = (flags & 2U) != 0;
    flow.mtu_bytes = (flags & 4U) != 0 ? 1500 : 0;
    flow.safe_envelope = (flags & 16U) != 0;
    flow.reordering_threshold = (flags >> 5U) & 1U;
    flow.ack_eliciting_threshold = input.byte() % 8U;
    flow.flow_control_window_bytes = 1U << (12U + input.byte() % 10U);
    if ((flags & 64U) != 0) {
        flow.window_update_bytes = 15'000;
        flow.acks_for_max_data = 1 + input.byte() % 16U;
        flow.acknowledges_alone = flow.losses_by_count = true;
        flow.probe_timeout = 10 * kMillisecond;
        flow.segment_bytes = 1170;
        flow.uncounted_bytes = 11;
    }
    Application& application = flow.application;
    switch (input.byte() % 3U) {
        case 0:
            application.kind = ApplicationKind::bulk;
            break;
        case 1:
            application.kind = ApplicationKind::transfer;
            application.size_bytes = 1 + input.number(3);
            break;
        default:
            application.kind = ApplicationKind::request_response;
            application.request_bytes = 100;
            application.response_sizes = {{5000, 1.0}};
            application.think_time = kMillisecond;
    }
    return flow;
}

class Network {
public:
    explicit Network(fuzz::Input& input)
        : input_(input),
          flow_(make_flow(input)),
          sender_(flow_, 0, 1, 0),
          receiver_(flow_, 0, quic::make_client(flow_, 0, 1)) {}

    void run() {
        poll();
        for (int step = 0; step < kMostSteps && now_ < kLongest && !input_.empty(); ++step) {
            const std::uint8_t choice = input_.byte();
            pass_time(choice >> 4U);
            const bool to_sender = (choice & 1U) != 0;
            happen((choice >> 1U) & 7U, to_sender);
            poll();
        }
        check();
    }

private:
    // 0: a datagram is lost; 1: one is made up; 2: one is damaged; 3: an old one comes once more.
    void happen(unsigned what, bool to_sender) {
        if (what == 1) return make_up(to_sender);
        auto& line = under_way_[to_sender];
        if (what == 3) line.push_back(last_[to_sender]);
        if (line.empty()) return;
        quic::Datagram datagram = line.front();
        line.pop_front();
        if (what == 0) return;
        if (what == 2) {
            const std::uint8_t place = input_.byte();
            datagram.prefix[place % std::max<std::size_t>(1, datagram.prefix_bytes)] = input_.byte();
        }
        give(to_sender, what == 2 ? sealed(to_sender, quic::view(datagram)) : quic::view(datagram));
    }

    template <class Work>
    void with(bool sender, Work work) {
        if (sender) {
            work(sender_);
        } else {
            work(receiver_);
        }
    }

    // 0: none; 15: up to the next timer; between: ever more.
    void pass_time(unsigned how) {
        if (how == 15) {
            const Time next = std::min(sender_.next_timeout(), receiver_.next_timeout());
            now_ = std::max(now_, std::min(next, kLongest));
        } else if (how > 0) {
            now_ += Time{1} << (2U * how + 8U);  // 1 µs to 70 s
        }
        for (int timeouts = 0;; ++timeouts) {
            const bool sender_is_due = sender_.next_timeout() <= now_;
            if (!sender_is_due && receiver_.next_timeout() > now_) return;
            require(timeouts < kMostAtOnce, "timers end");
            with(sender_is_due, [&](auto& endpoint) { endpoint.on_timeout(now_); });
            poll();
        }
    }

    void poll() {
        for (const bool is_sender : {true, false}) {
            int count = 0;
            quic::Datagram datagram;
            with(is_sender, [&](auto& endpoint) {
                while (endpoint.poll_datagram(now_, datagram)) {
                    require(++count < kMostAtOnce, "an endpoint stops sending");
                    require(datagram.prefix_bytes <= datagram.size_bytes, "the prefix is a part of it");
                    check_readable(datagram);
                    last_[!is_sender] = datagram;
                    auto& line = under_way_[!is_sender];
                    if (line.size() < kMostUnderWay) line.push_back(datagram);
                }
            });
        }
    }

    // Whatever an endpoint was told, its peer can read what it says.
    static void check_readable(const quic::Datagram& datagram) {
        quic::Reader reader(quic::view(datagram), datagram.size_bytes - quic::kTagBytes);
        quic::PacketHeader header;
        quic::FrameHandler nothing;
        quic::AckFrame ack;
        bool ack_eliciting = false;
        auto error = quic::read_header(reader, header);
        if (error == quic::ParseError::none)
            error = quic::read_frames(reader, header.type, nothing, ack, ack_eliciting);
        require(error == quic::ParseError::none, quic::describe(error));
    }

    void give(bool to_sender, const quic::DatagramView& datagram) {
        with(to_sender, [&](auto& endpoint) {
            const std::uint64_t number = endpoint.on_datagram(now_, datagram).packet_number;
            require(number == quic::kNoPacket || quic::opens(datagram, number),
                    "a packet is read under the number that it was sealed with");
        });
    }
    // As a peer would have sealed it, whose numbers go on where they are: what follows the number is read
    // too.
    quic::DatagramView sealed(bool to_sender, quic::DatagramView datagram) const {
        quic::Reader reader(datagram, datagram.size_bytes);
        quic::PacketHeader header;
        if (quic::read_header(reader, header) != quic::ParseError::none) return datagram;
        datagram.sealed_number = static_cast<std::uint32_t>(quic::decode_packet_number(
            last_[to_sender].sealed_number + 1, header.truncated_packet_number, header.packet_number_bytes));
        return datagram;
    }
    // A datagram of the input's bytes.
    void make_up(bool to_sender) {
        const std::size_t implied_zeros = input_.number(2) % 2048U;
        const auto ecn = static_cast<quic::Ecn>(input_.byte() & 3U);
        const auto bytes = input_.bytes(input_.byte());
        const std::vector<std::uint8_t> prefix(bytes.begin(), bytes.end());  // with its own end
        give(to_sender,
             sealed(to_sender, {prefix.data(), prefix.size(), prefix.size() + implied_zeros, ecn}));
    }

    void check() const {
        FlowStatistics statistics;
        sender_.add_statistics(now_, statistics);
        receiver_.add_statistics(now_, statistics);
        require(statistics.goodput_bytes <= statistics.received_bytes, "goodput is a part of what arrived");
        require(sender_.controller().window_bytes() > 0, "a window is above 0");
        require(sender_.controller().pacing_rate() >= 0.0, "a pacing rate is a number, and not below 0");
    }

    fuzz::Input& input_;
    Flow flow_;
    quic::Sender sender_;
    quic::Receiver receiver_;
    Time now_ = 0;
    std::deque<quic::Datagram> under_way_[2];  // to the receiver, to the sender
    quic::Datagram last_[2] = {};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    Network(input).run();
    return 0;
}
