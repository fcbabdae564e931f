#include "sim/relay/udp_flows.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "sim/base/ring.hpp"
#include "sim/embedding/agent.hpp"
#include "sim/quic/endpoint.hpp"
#include "sim/quic/receiver.hpp"
#include "sim/quic/sender.hpp"

namespace quicgym::relay {

namespace {

constexpr std::size_t kTagBytes = quic::kTagBytes;

// The simulated endpoints encrypt nothing. Where the tag of the AEAD would be, this stands.
struct Tag {
    std::uint64_t checksum;  // of the rest, so that bytes that are altered on the way are noticed
    std::uint32_t sealed_number;
    std::uint32_t zero;
};
static_assert(sizeof(Tag) == kTagBytes);

// Eight bytes at a time, after FNV-1a.
std::uint64_t checksum(const std::uint8_t* bytes, std::size_t count) {
    std::uint64_t sum = 14695981039346656037ULL ^ count;
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        std::uint64_t word;
        std::memcpy(&word, bytes + i, 8);
        sum = (sum ^ word) * 1099511628211ULL;
        sum ^= sum >> 29;
    }
    for (; i < count; ++i) sum = (sum ^ bytes[i]) * 1099511628211ULL;
    return sum;
}

struct Arrived {
    Time time;
    std::uint32_t packet;  // in the pool
    quic::Ecn ecn;
};

// One host's end: what has come for its endpoint, and where its datagrams go.
class UdpHost {
public:
    UdpHost(PacketPool& pool, const char* name)
        : pool_(pool), name_(name), port_(Port::udp({"127.0.0.1", 0}, std::nullopt)) {}

    Port& port() { return port_; }
    const Port& port() const { return port_; }

    // Queues a datagram. Throws std::runtime_error for one that is not as it was sent.
    void take_in(const ReceivedPacket& packet, Time time) {
        const HeldPacket& held = pool_[packet.number];
        if (held.bytes < kTagBytes ||
            tag_of(held).checksum != checksum(held.content, held.bytes - kTagBytes)) {
            fail("got " + std::to_string(held.bytes) + " bytes that are no datagram of its peer");
        }
        arrived_.make_room(head_, tail_);
        // The kernel may stamp two sockets' packets in another order than they are read.
        latest_ = std::max(latest_, time);
        arrived_[tail_++] = {latest_, packet.number, packet.ecn};
    }

    // Throws std::runtime_error where the peer's socket is closed, or the own one has failed.
    void check() const {
        const PortErrors& errors = port_.errors();
        if (errors.refused > 0) fail("has lost its peer: the relay is gone");
        if (errors.overflow > 0) fail("got more at once than there is room for");
        if (errors.errors > 0) fail(std::string("has a socket error: ") + std::strerror(errors.last_error));
    }

    Time next_arrival() const { return head_ == tail_ ? kNever : arrived_[head_].time; }
    quic::DatagramView arrived() {
        const Arrived& next = arrived_[head_];
        const HeldPacket& held = pool_[next.packet];
        return {held.content, std::min(held.bytes - kTagBytes, quic::kMaxPrefixBytes), held.bytes, next.ecn,
                tag_of(held).sealed_number};
    }
    void on_received(Time, const quic::Receipt& receipt) {
        if (receipt.error != quic::ParseError::none)
            fail(std::string("got a datagram that is no QUIC: ") + quic::describe(receipt.error));
        pool_.give_back(arrived_[head_++].packet);
    }
    quic::Datagram& outgoing() { return outgoing_; }
    void send(Time) {
        const std::size_t content = outgoing_.size_bytes - kTagBytes;
        packet_.bytes = outgoing_.size_bytes;
        std::memcpy(packet_.content, outgoing_.prefix, outgoing_.prefix_bytes);
        std::memset(packet_.content + outgoing_.prefix_bytes, 0, packet_.bytes - outgoing_.prefix_bytes);
        const Tag tag{checksum(packet_.content, content), outgoing_.sealed_number, 0};
        std::memcpy(packet_.content + content, &tag, sizeof tag);
        if (port_.send(packet_, outgoing_.ecn)) return;
        check();
        fail("cannot send");
    }

private:
    static Tag tag_of(const HeldPacket& held) {
        Tag tag;
        std::memcpy(&tag, held.content + held.bytes - sizeof tag, sizeof tag);
        return tag;
    }
    [[noreturn]] void fail(const std::string& what) const { throw std::runtime_error(name_ + (" " + what)); }

    PacketPool& pool_;
    std::string name_;
    Port port_;
    Ring<Arrived> arrived_;
    std::uint64_t head_ = 0;
    std::uint64_t tail_ = 0;
    Time latest_ = 0;
    quic::Datagram outgoing_;
    HeldPacket packet_;
};

// An endpoint as it is driven late: what was due before `floor` happens then.
template <quic::Endpoint E>
class Late {
public:
    Late(E& endpoint, Time floor) : endpoint_(endpoint), floor_(floor) {}
    quic::Receipt on_datagram(Time now, const quic::DatagramView& datagram) {
        return endpoint_.on_datagram(now, datagram);
    }
    void on_timeout(Time now) { endpoint_.on_timeout(now); }
    bool poll_datagram(Time now, quic::Datagram& out) { return endpoint_.poll_datagram(now, out); }
    Time next_timeout() const { return std::max(endpoint_.next_timeout(), floor_); }

private:
    E& endpoint_;
    Time floor_;
};

class LateHost {
public:
    LateHost(UdpHost& host, Time floor) : host_(host), floor_(floor) {}
    Time next_arrival() const { return std::max(host_.next_arrival(), floor_); }
    quic::DatagramView arrived() { return host_.arrived(); }
    void on_received(Time now, const quic::Receipt& receipt) { host_.on_received(now, receipt); }
    quic::Datagram& outgoing() { return host_.outgoing(); }
    void send(Time now) { host_.send(now); }

private:
    UdpHost& host_;
    Time floor_;
};

Flow steered(const UdpFlowPlan& plan) {
    Flow flow = plan.flow;
    if (flow.max_datagram_bytes > kMostPacketBytes) {
        throw std::invalid_argument("max_datagram_bytes = " + std::to_string(flow.max_datagram_bytes) +
                                    ": sockets of a run take up to " + std::to_string(kMostPacketBytes));
    }
    if (plan.policy) {
        flow.controller_factory = [policy = plan.policy](const ParameterValues&, std::uint64_t bytes) {
            return policy->make_controller(bytes);
        };
    }
    return flow;
}

}  // namespace

struct UdpFlows::Hosts : SteeredFlows {
    Hosts(const UdpFlowPlan& plan, PacketPool& pool)
        : flow(steered(plan)),
          start(flow.start),
          sender(flow, 0, plan.seed, start),
          receiver(flow, start),
          sending(pool, "the sender"),
          receiving(pool, "the receiver") {
        if (plan.policy && !plan.policy->agent) {  // an agent of other authors decides by the sender's timer
            agent.emplace(plan.policy, flow.max_datagram_bytes);
            next_decision = start;
        }
    }

    ControllerSnapshot snapshot(std::size_t) const override { return sender.controller().snapshot(); }
    ParameterValues parameters(std::size_t) const override { return sender.controller().parameters(); }
    void set_parameters(std::size_t, const ParameterValues& values) override {
        sender.set_parameters(time, values);
    }

    FlowState state() const {
        FlowState state;
        state.start = start;
        sender.add_state(time, state);
        return state;
    }

    // Without `end`; at most one RTT sample comes with a datagram.
    void advance(Time end, Time floor) {
        Late late_receiver(receiver, floor);
        LateHost late_receiving(receiving, floor);
        quic::drive(late_receiver, late_receiving, end);
        Late late_sender(sender, floor);
        LateHost late_sending(sending, floor);
        for (;;) {
            const Time next = std::min(late_sending.next_arrival(), late_sender.next_timeout());
            if (next >= end) break;
            quic::drive(late_sender, late_sending, next + 1);
            note_rtt(next);
        }
    }

    void note_rtt(Time now) {
        FlowState after;
        sender.add_state(now, after);
        if (after.rtt_samples == rtt_samples) return;
        const double sum = after.rtt_sum_seconds - rtt_sum_seconds;
        const auto mean =
            static_cast<Time>(std::llround(1e9 * sum / static_cast<double>(after.rtt_samples - rtt_samples)));
        for (; rtt_samples < after.rtt_samples; ++rtt_samples) record.rtt.push_back({now, mean});
        rtt_sum_seconds = after.rtt_sum_seconds;
    }

    // Late by `lateness`, at `now`.
    void decide(Time now, Time lateness) {
        time = now;
        next_decision = agent->decide(*this, state(), now);
        record.decision_lateness.push_back(lateness);
        while (sender.poll_datagram(now, sending.outgoing())) sending.send(now);
    }

    Flow flow;
    Time start;
    Time time = 0;
    FlowRecord record;
    quic::Sender sender;
    quic::Receiver receiver;
    UdpHost sending;
    UdpHost receiving;
    std::optional<embedding::Agent> agent;
    Time next_decision = kNever;
    std::uint64_t rtt_samples = 0;
    double rtt_sum_seconds = 0.0;
};

UdpFlows::UdpFlows(std::vector<UdpFlowPlan> plans, Time interval, Time duration)
    : shown_(std::make_unique<Shown[]>(plans.size())), interval_(interval), duration_(duration) {
    if (interval < 1 || duration < 0) {
        throw std::invalid_argument("interval = " + std::to_string(interval) + ", duration = " +
                                    std::to_string(duration) + ": use 1 ns or more and 0 ns or more");
    }
    for (const UdpFlowPlan& plan : plans) {
        flows_.push_back(std::make_unique<Hosts>(plan, pool_));
        flows_.back()->record.rows.reserve(static_cast<std::size_t>(duration / interval) + 1);
    }
}

UdpFlows::~UdpFlows() = default;

Address UdpFlows::receiver_address(std::size_t flow) const {
    return flows_.at(flow)->receiving.port().local();
}

Address UdpFlows::sender_address(std::size_t flow) const {
    return flows_.at(flow)->sending.port().local();
}

void UdpFlows::connect(std::size_t flow, const Address& to_receiver, const Address& to_sender) {
    if (worker_.has_started()) throw std::logic_error("the flows have been started; connect before");
    flows_.at(flow)->sending.port().connect(to_receiver);
    flows_.at(flow)->receiving.port().connect(to_sender);
}

void UdpFlows::start(Time zero) {
    if (worker_.has_started()) throw std::logic_error("the flows were started before; make new ones");
    for (const auto& flow : flows_) {
        if (!flow->receiving.port().knows_peer()) throw std::logic_error("a flow is not connected");
        polled_.push_back({flow->sending.port().descriptor(), POLLIN, 0});
        polled_.push_back({flow->receiving.port().descriptor(), POLLIN, 0});
    }
    zero_ = zero;
    worker_.start([this] { run(); });
}

UdpFlows::Progress UdpFlows::progress() const {
    Progress progress{shown_time_, {}, {}};
    for (std::size_t flow = 0; flow < flows_.size(); ++flow) {
        progress.goodput_bytes.push_back(shown_[flow].goodput_bytes);
        progress.smoothed_rtt.push_back(shown_[flow].smoothed_rtt);
    }
    return progress;
}

const FlowRecord& UdpFlows::record(std::size_t flow) const {
    refuse_while_running();
    return flows_.at(flow)->record;
}

void UdpFlows::record_events() {
    if (worker_.has_started()) throw std::logic_error("the flows have been started; record before");
    for (const auto& flow : flows_) flow->sender.record_events();
}

const std::vector<quic::SenderEvent>& UdpFlows::events(std::size_t flow) const {
    refuse_while_running();
    return flows_.at(flow)->sender.events();
}

void UdpFlows::refuse_while_running() const {
    if (worker_.has_started() && !worker_.has_ended())
        throw std::logic_error("the flows still run; stop them before you read what they did");
}

void UdpFlows::run() {
    has_realtime_priority_ = wake_on_time();
    while (!worker_.is_stopping() && next_row_ <= duration_) {
        wait();
        const Time reached = now();  // what comes after it is read next time
        take_in();
        advance(std::min(reached, duration_));
    }
    for (const auto& flow : flows_) {
        FlowStatistics statistics;
        flow->sender.add_statistics(duration_, statistics);
        flow->receiver.add_statistics(duration_, statistics);
        flow->record.completion = statistics.completion;
        flow->record.compared_bytes = statistics.goodput_bytes;
        flow->record.probe_timeouts = statistics.probe_timeouts;
        flow->record.persistent_congestion = statistics.persistent_congestion_events;
    }
}

// Until something has come, or a timer is due.
void UdpFlows::wait() {
    Time next = std::min(next_row_, duration_);
    for (const auto& flow : flows_) {
        next =
            std::min({next, flow->next_decision, flow->sender.next_timeout(), flow->receiver.next_timeout()});
    }
    const timespec timeout = to_timespec(std::max<Time>(0, next - now()));
    if (ppoll(polled_.data(), polled_.size(), &timeout, nullptr) < 0 && errno != EINTR)
        throw std::system_error(errno, std::generic_category(), "ppoll");
    clock_.follow();
}

void UdpFlows::take_in() {
    for (std::size_t number = 0; number < polled_.size(); ++number) {
        if (polled_[number].revents == 0) continue;
        Hosts& flow = *flows_[number / 2];
        UdpHost& host = number % 2 == 0 ? flow.sending : flow.receiving;
        received_.clear();
        host.port().receive(pool_, received_);
        host.check();
        for (const ReceivedPacket& packet : received_) {
            host.take_in(packet, clock_.monotonic_at(packet.stamp) - zero_);
        }
    }
}

void UdpFlows::advance(Time now) {
    for (;;) {
        Time next = next_row_;
        for (const auto& flow : flows_) next = std::min(next, flow->next_decision);
        if (next > now) break;
        const Time at = std::max({next, floor_, now - kCredit});
        advance_flows(at + 1);
        for (const auto& flow : flows_) {
            if (flow->next_decision <= at) flow->decide(at, this->now() - flow->next_decision);
        }
        if (next_row_ <= at) sample(next_row_);
    }
    advance_flows(now + 1);
}

void UdpFlows::advance_flows(Time end) {
    floor_ = std::max(floor_, end - 1 - kCredit);
    for (const auto& flow : flows_) flow->advance(end, floor_);
    floor_ = std::max(floor_, end - 1);
}

void UdpFlows::sample(Time time) {
    for (std::size_t i = 0; i < flows_.size(); ++i) {
        Hosts& flow = *flows_[i];
        FlowStatistics statistics;
        flow.receiver.add_statistics(time, statistics);
        const TraceSample sample = flow.sender.sample(time);
        flow.record.rows.push_back({time, sample.window_bytes, sample.pacing_rate, sample.smoothed_rtt,
                                    sample.in_flight_bytes, sample.delivered_bytes, sample.lost_bytes,
                                    flow.sender.lost_packets(), statistics.goodput_bytes,
                                    static_cast<std::int64_t>(sample.mode)});
        shown_[i].goodput_bytes = statistics.goodput_bytes;
        shown_[i].smoothed_rtt = sample.smoothed_rtt;
    }
    shown_time_ = time;
    next_row_ += interval_;
}

}  // namespace quicgym::relay
