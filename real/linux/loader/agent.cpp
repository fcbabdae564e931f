#include "loader/agent.hpp"

#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace quicgym::linux_tcp {

namespace {

constexpr std::int64_t kPollNs = 2'000'000;
constexpr std::uint64_t kSmallestDatagram = 1200;  // RFC 9000 14
// An IP packet with this many bytes of payload over TCP with timestamps (52 bytes of headers) carries 24
// bytes more over UDP (28 bytes).
constexpr std::uint64_t kDatagramOverSegment = 24;
constexpr std::uint64_t kSeed = 0;

std::uint64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

template <class Function>
void Library::find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr) {
        throw std::invalid_argument(std::string("the library of quicgym's C interface has no ") + name +
                                    "; install quicgym and quicgym-linux of the same version");
    }
}

Library::Library(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::invalid_argument(dlerror());
    decltype(&quicgym_api_version) version;
    find(version, "quicgym_api_version");
    if (version() != QUICGYM_API_VERSION) {
        throw std::invalid_argument(path + " has version " + std::to_string(version()) +
                                    " of the C interface, and version " +
                                    std::to_string(QUICGYM_API_VERSION) +
                                    " is needed; install quicgym and quicgym-linux of the same version");
    }
    find(last_error, "quicgym_last_error");
    find(controller_new, "quicgym_controller_new");
    find(controller_of, "quicgym_controller_of");
    find(controller_free, "quicgym_controller_free");
    find(set_parameter, "quicgym_set_parameter");
    find(on_sent, "quicgym_on_sent");
    find(on_ack, "quicgym_on_ack");
    find(on_ecn, "quicgym_on_ecn");
    find(on_loss, "quicgym_on_loss");
    find(on_persistent_congestion, "quicgym_on_persistent_congestion");
    find(on_app_limited, "quicgym_on_app_limited");
    find(on_window_unused, "quicgym_on_window_unused");
    find(window_bytes, "quicgym_window_bytes");
    find(pacing_rate, "quicgym_pacing_rate_bytes_per_s");
    find(policy_load, "quicgym_policy_load");
    find(policy_free, "quicgym_policy_free");
    find(policy_controller_new, "quicgym_policy_controller_new");
    find(policy_decide, "quicgym_policy_decide");
}

Library::~Library() {
    dlclose(handle_);
}

SteeredFlow::SteeredFlow(const Library& library, const Steering& steering, const quicgym_policy* policy,
                         const steered_event& begin)
    : library_(library),
      controller_(nullptr),
      has_policy_(policy != nullptr),
      datagram_bytes_(std::max(begin.segment_bytes + kDatagramOverSegment, kSmallestDatagram)),
      before_(begin) {
    const std::int64_t now = time(begin);
    if (has_policy_) {
        controller_ = library_.policy_controller_new(policy, datagram_bytes_, kSeed, now);
    } else if (steering.specification != nullptr) {
        controller_ = library_.controller_of(steering.specification, datagram_bytes_, kSeed, now);
    } else {
        controller_ = library_.controller_new(steering.controller.c_str(), datagram_bytes_, kSeed, now);
    }
    if (controller_ == nullptr) throw std::invalid_argument(library_.last_error());
    for (const auto& [name, values] : steering.parameters) {
        if (library_.set_parameter(controller_, name.c_str(), values.data(), values.size()) == QUICGYM_OK)
            continue;
        const std::string problem = library_.last_error();
        library_.controller_free(controller_);
        throw std::invalid_argument(problem);
    }
    if (has_policy_) check(library_.policy_decide(controller_, now, &next_decision_ns_));
}

SteeredFlow::~SteeredFlow() {
    library_.controller_free(controller_);
}

void SteeredFlow::check(int status) const {
    if (status != QUICGYM_OK) throw std::runtime_error(library_.last_error());
}

// The controllers' clock never goes backwards.
std::int64_t SteeredFlow::time(const steered_event& event) {
    now_ns_ = std::max(now_ns_, static_cast<std::int64_t>(event.now_us) * 1000);
    return now_ns_;
}

void SteeredFlow::take_sent(const steered_event& event) {
    const std::uint32_t count = event.sent - before_.sent;
    const std::int64_t sent_ns =
        std::clamp(static_cast<std::int64_t>(event.sent_us) * 1000, now_ns_,
                   std::max(now_ns_, static_cast<std::int64_t>(event.now_us) * 1000));
    for (std::uint32_t i = 0; i < count; ++i) {
        check(library_.on_sent(controller_, sent_ns, next_number_, datagram_bytes_));
        in_flight_.push_back({next_number_++, static_cast<std::uint64_t>(sent_ns) / 1000});
    }
    now_ns_ = sent_ns;
}

std::vector<std::uint64_t> SteeredFlow::remove(std::size_t first, std::size_t count) {
    first = std::min(first, in_flight_.size());
    count = std::min(count, in_flight_.size() - first);
    const auto begin = in_flight_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    std::vector<std::uint64_t> numbers;
    numbers.reserve(count);
    std::transform(begin, end, std::back_inserter(numbers), [](const Packet& one) { return one.number; });
    in_flight_.erase(begin, end);
    return numbers;
}

// The kernel counts; which packets it means follows from when the newest of them was sent. Selective
// acknowledgements end with that packet, and losses are the oldest packets of those that are left.
void SteeredFlow::take_fates(const steered_event& event) {
    const std::int64_t now = time(event);
    const std::uint32_t delivered = event.delivered - before_.delivered;
    if (delivered > 0) {
        const auto after = std::upper_bound(
            in_flight_.begin(), in_flight_.end(), event.newest_us,
            [](std::uint64_t newest_us, const Packet& packet) { return newest_us < packet.sent_us; });
        const auto end =
            std::max<std::size_t>(static_cast<std::size_t>(after - in_flight_.begin()), delivered);
        const std::vector<std::uint64_t> numbers = remove(end - delivered, delivered);
        check(library_.on_ack(controller_, now, 0, numbers.data(), numbers.size()));
    }
    if (event.marked != before_.marked)
        check(library_.on_ecn(controller_, now, event.marked - before_.marked));
    const std::uint32_t lost = event.lost - before_.lost;
    if (lost > 0) {
        const std::vector<std::uint64_t> numbers = remove(0, lost);
        check(library_.on_loss(controller_, now, numbers.data(), numbers.size()));
    }
    // Where the counts differ, as after a loss that was none, the kernel is right.
    if (in_flight_.size() > event.in_flight) {
        const std::vector<std::uint64_t> numbers = remove(0, in_flight_.size() - event.in_flight);
        check(library_.on_ack(controller_, now, 0, numbers.data(), numbers.size()));
    }
    // RFC 9002 7.6: a second timeout without an acknowledgement between them.
    if (event.kind == STEERED_TIMEOUT && event.timeouts > 0)
        check(library_.on_persistent_congestion(controller_, now));
    if (event.limit == STEERED_BY_APPLICATION) check(library_.on_app_limited(controller_, now));
    if (event.limit == STEERED_BY_RECEIVER) check(library_.on_window_unused(controller_, now));
}

void SteeredFlow::take(const steered_event& event) {
    take_sent(event);
    if (event.kind == STEERED_ACK || event.kind == STEERED_TIMEOUT) {
        take_fates(event);
        // At the time of an event, never at that of this thread: later events would be in the past.
        if (has_policy_ && now_ns_ >= next_decision_ns_)
            check(library_.policy_decide(controller_, now_ns_, &next_decision_ns_));
    }
    before_ = event;
}

void SteeredFlow::write(steered_decision& decision) const {
    const double payload = static_cast<double>(before_.segment_bytes) / static_cast<double>(datagram_bytes_);
    const std::uint64_t window = library_.window_bytes(controller_) / datagram_bytes_;
    const double rate = library_.pacing_rate(controller_) * payload;
    const auto relaxed = [](__u64& to, std::uint64_t value) {
        std::atomic_ref<__u64>(to).store(value, std::memory_order_relaxed);
    };
    relaxed(decision.window, std::min<std::uint64_t>(window, 1U << 30));
    relaxed(decision.pacing_rate, rate < 1e18 ? static_cast<std::uint64_t>(rate) : ~std::uint64_t{0});
    std::atomic_ref<__u64>(decision.flow).store(before_.flow, std::memory_order_release);
}

Agent::Agent(const Program& program, const std::string& library, Steering steering)
    : library_(library),
      steering_(std::move(steering)),
      decisions_(program.map("decisions"), program.map_bytes("decisions")),
      agents_(program.map("agents"), program.map_bytes("agents")),
      events_(ring_buffer__new(program.map("events"), on_event, this, nullptr), ring_buffer__free) {
    if (!events_) throw std::runtime_error("the ring buffer of the program cannot be opened");
    if (!steering_.policy.empty()) {
        quicgym_policy* const loaded = library_.policy_load(steering_.policy.c_str());
        if (loaded == nullptr) throw std::invalid_argument(library_.last_error());
        policy_ = {loaded, [this](const quicgym_policy* one) {
                       library_.policy_free(const_cast<quicgym_policy*>(one));
                   }};
    }
    probe();
    static_cast<steered_agent*>(agents_.data())->alive_ns = monotonic_ns();
    thread_ = std::thread([this] { run(); });
}

// A controller or a parameter that does not exist is an error now, and not that of the first connection.
void Agent::probe() const {
    steered_event event{};
    event.segment_bytes = 1376;
    const SteeredFlow flow(library_, steering_, policy_.get(), event);
}

void Agent::close() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    flows_.clear();
    policy_.reset();
}

std::string Agent::problem() const {
    return ends_ ? problem_ : "";
}

int Agent::on_event(void* agent, void* data, std::size_t bytes) {
    if (bytes == sizeof(steered_event)) static_cast<Agent*>(agent)->take(*static_cast<steered_event*>(data));
    return 0;
}

void Agent::take(const steered_event& event) {
    auto* const decision = static_cast<steered_decision*>(decisions_.data()) + event.slot;
    try {
        const auto found = flows_.find(event.slot);
        if (event.kind == STEERED_END) {
            if (found != flows_.end() && found->second->flow() == event.flow) flows_.erase(found);
            return;
        }
        if (found == flows_.end() || found->second->flow() != event.flow) {
            // Its beginning may have been lost where the buffer was full.
            flows_[event.slot] = std::make_unique<SteeredFlow>(library_, steering_, policy_.get(), event);
        } else {
            found->second->take(event);
        }
        flows_[event.slot]->write(*decision);
    } catch (const std::exception& error) {
        problem_ = error.what();
        ends_ = true;
    }
}

void Agent::run() {
    pthread_setname_np(pthread_self(), "quicgym-agent");
    // Better than waiting behind others, where the system allows it.
    const sched_param priority{.sched_priority = 1};
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
    auto* const agent = static_cast<steered_agent*>(agents_.data());
    while (!ends_) {
        ring_buffer__consume(events_.get());
        std::atomic_ref<__u64>(agent->alive_ns).store(monotonic_ns(), std::memory_order_relaxed);
        const timespec pause{.tv_sec = 0, .tv_nsec = kPollNs};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
    }
}

}  // namespace quicgym::linux_tcp
