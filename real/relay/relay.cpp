#include "real/relay/relay.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace quicgym::relay {

namespace {

constexpr Time kIdleWait = 20 * kMillisecond;
constexpr Time kShortestTick = 50 * kMicrosecond;
constexpr Time kLongestTick = 2 * kMillisecond;
constexpr Time kLongestMargin = 500 * kMicrosecond;
constexpr Time kLongestRest = 100 * kMicrosecond;

Time thread_cpu() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * kSecond + now.tv_nsec;
}

}  // namespace

// Between two looks at the sockets, a packet must not have come to its receiver. What the kernel has stamped
// may be readable a little later, so the network stays behind by a margin.
//
// To wake up costs as much as to pass two or three packets on. What is due sooner than a rest after the last
// time leaves together, which adds at most 1% to an RTT.
Relay::Relay(const Scenario& scenario, std::uint64_t seed)
    : network_(scenario, seed),
      ports_(2 * network_.path_count()),
      tick_(std::clamp(network_.shortest_transit() / 4, kShortestTick, kLongestTick)),
      margin_(std::min(network_.shortest_transit() / 4, kLongestMargin)),
      rest_(std::min(network_.shortest_transit() / 100, kLongestRest)) {}

void Relay::add_port(std::size_t path, DataDirection way, Port port) {
    if (path >= path_count()) {
        throw std::invalid_argument("path " + std::to_string(path) + " does not exist; there are " +
                                    std::to_string(path_count()));
    }
    if (worker_.has_started()) throw std::logic_error("the relay has been started; add ports before");
    std::optional<Port>& place = ports_[port_of(path, way)];
    if (place) throw std::invalid_argument("path " + std::to_string(path) + " has this port already");
    place.emplace(std::move(port));
}

void Relay::start() {
    if (worker_.has_started()) throw std::logic_error("the relay was started before; make a new one");
    for (std::size_t port = 0; port < ports_.size(); ++port) {
        if (!ports_[port]) {
            throw std::logic_error("path " + std::to_string(port / 2) + " has no port on the " +
                                   (port % 2 == 0 ? "senders'" : "receivers'") + " side");
        }
    }
    for (const std::optional<Port>& port : ports_) polled_.push_back({port->descriptor(), POLLIN, 0});
    start_ = Clock::monotonic();
    worker_.start([this] {
        const auto note_end = [this] {
            stopped_at_ = now();
            cpu_ = thread_cpu();
        };
        try {
            run();
        } catch (...) {
            note_end();
            throw;
        }
        note_end();
        if (network_.recording().is_on()) network_.advance(stopped_at_);
    });
}

void Relay::record(Time interval, Time duration) {
    if (worker_.has_started()) throw std::logic_error("the relay has been started; record before");
    network_.record(interval, duration);
}

const net::Recording& Relay::recording() const {
    if (worker_.has_started() && !worker_.has_ended())
        throw std::logic_error("the relay still runs; stop it before you read its recording");
    return network_.recording();
}

void Relay::run() {
    has_realtime_priority_ = wake_on_time();
    Time next_look = 0;
    Time woke = 0;
    while (!worker_.is_stopping()) {
        const bool is_idle = network_.in_transit() == 0 && due_.empty();
        if (is_idle || now() >= next_look) {
            take_in(is_idle);
            next_look = now() + tick_;
        }
        send_due();
        if (is_asked_) {
            answer_ = make_report();
            is_asked_ = false;
        }
        if (network_.in_transit() == 0 && due_.empty()) continue;
        const Time next = due_.empty() ? next_look : std::min(next_look, due_.front().time);
        const timespec until = to_timespec(std::max(next, woke + rest_) + start_);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
        woke = now();
        send_due();
    }
}

// Hands everything that has arrived to the network, and lets that go on as far as it is known what arrives.
void Relay::take_in(bool wait) {
    const timespec timeout = to_timespec(wait ? kIdleWait : 0);
    // A socket that is not readable after `before` has nothing with an earlier stamp, but for the margin.
    Time before = now();
    const int ready = ppoll(polled_.data(), polled_.size(), &timeout, nullptr);
    if (ready < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category(), "ppoll");
    clock_.follow();
    if (ready > 0) {
        if (wait) before = now();
        for (std::size_t number = 0; number < ports_.size(); ++number) {
            if (polled_[number].revents == 0) continue;
            received_.clear();
            ports_[number]->receive(pool_, received_);
            const auto way = number % 2 == 0 ? DataDirection::forward : DataDirection::backward;
            for (const ReceivedPacket& packet : received_) {
                const Time arrival = std::max<Time>(0, clock_.monotonic_at(packet.stamp) - start_);
                const auto path = static_cast<std::uint32_t>(number / 2);
                const Time moved =
                    network_.send({packet.number, arrival, path, way, packet.wire_bytes,
                                   packet.queue_flow == 0 ? path : packet.queue_flow, packet.ecn});
                moved_ += moved > 0;
                moved_max_ = std::max(moved_max_, moved);
            }
        }
    }
    move_on(before + network_.lookahead() - margin_);
}

void Relay::move_on(Time end) {
    for (const net::EmulatedNetwork::Outcome& outcome : network_.advance(end)) {
        const auto packet = static_cast<std::uint32_t>(outcome.id);
        if (outcome.fate != net::Fate::delivered) {
            pool_.give_back(packet);
            continue;
        }
        const DataDirection far_side =
            outcome.way == DataDirection::forward ? DataDirection::backward : DataDirection::forward;
        due_.push_back({outcome.time, order_++, packet,
                        static_cast<std::uint32_t>(port_of(outcome.path, far_side)), outcome.ecn});
        std::push_heap(due_.begin(), due_.end(), Later{});
    }
}

void Relay::send_due() {
    while (!due_.empty()) {
        const Due next = due_.front();
        const Time late = now() - next.time;
        if (late < 0) return;
        std::pop_heap(due_.begin(), due_.end(), Later{});
        due_.pop_back();
        if (ports_[next.port]->send(pool_[next.packet], next.ecn)) {
            lateness_.add(late);
        } else {
            ++unsent_;
        }
        pool_.give_back(next.packet);
    }
}

Report Relay::make_report() const {
    Report report;
    report.elapsed = worker_.has_ended() ? stopped_at_ : start_ == 0 ? 0 : now();
    for (const DataDirection way : {DataDirection::forward, DataDirection::backward}) {
        const std::size_t index = way == DataDirection::forward ? 0 : 1;
        report.totals[index] = network_.totals(way, report.elapsed);
        report.queues[index] = network_.queue(way, report.elapsed);
    }
    report.lateness_packets = lateness_.count();
    report.lateness_p50 = lateness_.quantile(0.50);
    report.lateness_p99 = lateness_.quantile(0.99);
    report.lateness_max = lateness_.max();
    report.unsent_packets = unsent_;
    report.moved_packets = moved_;
    report.moved_max = moved_max_;
    for (const std::optional<Port>& port : ports_) {
        if (!port) continue;
        const PortErrors& errors = port->errors();
        report.refused_packets += errors.refused;
        report.socket_errors += errors.errors;
        if (errors.errors > 0) report.last_error = errors.last_error;
        report.foreign_packets += errors.foreign;
        report.oversized_packets += errors.oversized;
        report.overflow_packets += errors.overflow;
        report.kernel_drops += port->kernel_drops();
    }
    report.clock_steps = clock_.steps();
    report.cpu = worker_.has_ended() ? cpu_ : start_ == 0 ? 0 : thread_cpu();
    report.has_realtime_priority = has_realtime_priority_;
    return report;
}

Report Relay::report() {
    worker_.refuse_in_forked_process();
    const std::lock_guard lock(reading_);
    if (worker_.has_started()) {
        is_asked_ = true;
        while (is_asked_ && !worker_.has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (!worker_.has_ended()) return answer_;
    }
    return make_report();
}

}  // namespace quicgym::relay
