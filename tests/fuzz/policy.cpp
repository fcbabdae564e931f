// A learned policy of any bytes, through the C interface: the description (JSON), a zero byte, the weights
// (safetensors). SHA256 in the description becomes the weights' checksum, which no fuzzer would find.
#include <stdexcept>
#include <string>
#include <string_view>

#include "real/embedding/quicgym/controller.h"
#include "sim/policy/safetensors.hpp"
#include "sim/policy/sha256.hpp"
#include "tests/fuzz/input.hpp"

using namespace quicgym;
using fuzz::require;

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

// A policy that was read can decide.
void decide(const quicgym_policy* policy) {
    quicgym_controller* const controller = quicgym_policy_controller_new(policy, 1200, 1, 0);
    require(controller != nullptr, "a policy that is read has a controller");
    std::int64_t due = 0;
    std::uint64_t number = 0;
    for (std::int64_t now = 0; now < 400 * kMillisecond; now += 10 * kMillisecond, ++number) {
        require(quicgym_on_sent(controller, now, number, 1200) == QUICGYM_OK, "a packet is taken");
        if (number > 0) {
            const std::uint64_t last = number - 1;
            const int result = number % 8 == 0 ? quicgym_on_loss(controller, now, &last, 1)
                                               : quicgym_on_ack(controller, now, 0, &last, 1);
            require(result == QUICGYM_OK, "ACKs and losses are taken");
        }
        if (now >= due) {
            const int result = quicgym_policy_decide(controller, now, &due);
            require(result == QUICGYM_OK, quicgym_last_error());
            require(due > now, "the next decision is later");
        }
        require(quicgym_window_bytes(controller) > 0, "a window is above 0");
        require(quicgym_pacing_rate_bytes_per_s(controller) >= 0.0, "a pacing rate is not below 0");
    }
    quicgym_controller_free(controller);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::size_t end = std::min(input.find('\0'), size);
    std::string description(input.substr(0, end));
    const std::string_view weights = input.substr(std::min(end + 1, size));
    constexpr std::string_view kPlaceholder = "SHA256";
    if (const std::size_t place = description.find(kPlaceholder); place != std::string::npos) {
        description.replace(place, kPlaceholder.size(), policy::sha256(weights));
    }
    quicgym_policy* const read =
        quicgym_policy_read(description.data(), description.size(), weights.data(), weights.size());
    if (read == nullptr) {
        const std::string_view error(quicgym_last_error());
        require(error.starts_with("description: ") || error.starts_with("weights: "),
                "an error says what is wrong");
        // Reached without a description that fits.
        try {
            (void)policy::read_safetensors(weights);
        } catch (const std::invalid_argument&) {
        }
        return 0;
    }
    decide(read);
    quicgym_policy_free(read);
    return 0;
}
