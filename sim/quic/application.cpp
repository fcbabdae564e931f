#include "sim/quic/application.hpp"

namespace quicgym::quic {

namespace {

constexpr std::uint64_t kBitNanoseconds = 8ULL * 1'000'000'000ULL;  // per byte, at 1 bit per second
constexpr std::uint64_t kUnlimited = 1ULL << 61;

}  // namespace

ApplicationSource::ApplicationSource(const Application& application, std::uint64_t message_bytes, Time start)
    : application_(application),
      start_(start),
      message_bytes_(message_bytes),
      encoder_(application.rates_bits_per_second) {
    switch (application.kind) {
        case ApplicationKind::bulk:
            written_ = kUnlimited;
            break;
        case ApplicationKind::transfer:
            written_ = total_ = application.size_bytes;
            finite_ = true;
            break;
        case ApplicationKind::web_page:
            for (const PageObject& object : application.objects) total_ += object.size_bytes;
            finite_ = answers_ = true;
            break;
        case ApplicationKind::request_response:
        case ApplicationKind::video:
            answers_ = true;
            break;
        case ApplicationKind::real_time_media:
            next_frame_ = start;
            break;
        case ApplicationKind::bursts:
            if (application.burst_own_stream) {
                Application bursts = application;
                bursts.burst_own_stream = false;
                bursts.rate_bits_per_second = 0;
                bursts_ = std::make_unique<ApplicationSource>(bursts, message_bytes, start);
                application_.kind = ApplicationKind::constant_rate;
            }
            [[fallthrough]];
        case ApplicationKind::constant_rate:
        case ApplicationKind::on_off:
            next_write_ = rate_at(start) > 0 ? start : next_rate_change(start);
            break;
    }
}

// Counts one message and finds the moment at which the rate has produced the next one.
void ApplicationSource::write() {
    written_ += message_bytes_;
    std::uint64_t missing = message_bytes_ * kBitNanoseconds;  // bits times ns
    Time time = next_write_;
    for (;;) {
        const std::uint64_t rate = rate_at(time);
        const Time change = next_rate_change(time);
        // Periods of weeks add up to more than Time holds before a low rate has a message.
        if ((rate == 0 && change == kNever) || time > kNever / 2) {
            next_write_ = kNever;
            return;
        }
        if (rate > 0) {
            const auto needed = static_cast<Time>((missing + rate - 1) / rate);
            if (change == kNever || time + needed <= change) {
                next_write_ = time + needed;
                return;
            }
            missing -= rate * static_cast<std::uint64_t>(change - time);
        }
        time = change;
    }
}

std::uint64_t ApplicationSource::rate_at(Time time) const {
    const Time elapsed = time - start_;
    switch (application_.kind) {
        case ApplicationKind::constant_rate:
            return application_.rate_bits_per_second;
        case ApplicationKind::bursts: {
            const auto burst = static_cast<std::uint64_t>(elapsed / application_.burst_period);
            const bool in_burst = burst < application_.burst_count &&
                                  elapsed % application_.burst_period < application_.burst_duration;
            return application_.rate_bits_per_second +
                   (in_burst ? application_.burst_rate_bits_per_second : 0);
        }
        case ApplicationKind::on_off:
            return elapsed % (application_.on_duration + application_.off_duration) < application_.on_duration
                       ? application_.rate_bits_per_second
                       : 0;
        case ApplicationKind::bulk:
        case ApplicationKind::transfer:
        case ApplicationKind::request_response:
        case ApplicationKind::web_page:
        case ApplicationKind::video:
        case ApplicationKind::real_time_media:
            break;
    }
    return 0;
}

Time ApplicationSource::next_rate_change(Time time) const {
    const Time elapsed = time - start_;
    switch (application_.kind) {
        case ApplicationKind::bursts: {
            const Time period = application_.burst_period;
            if (static_cast<std::uint64_t>(elapsed / period) >= application_.burst_count) return kNever;
            const Time phase = elapsed % period;
            return time - phase +
                   (phase < application_.burst_duration ? application_.burst_duration : period);
        }
        case ApplicationKind::on_off: {
            const Time period = application_.on_duration + application_.off_duration;
            const Time phase = elapsed % period;
            return time - phase + (phase < application_.on_duration ? application_.on_duration : period);
        }
        case ApplicationKind::bulk:
        case ApplicationKind::transfer:
        case ApplicationKind::constant_rate:
        case ApplicationKind::request_response:
        case ApplicationKind::web_page:
        case ApplicationKind::video:
        case ApplicationKind::real_time_media:
            break;
    }
    return kNever;
}

}  // namespace quicgym::quic
