// A learned policy of any bytes, through the C interface: the description (JSON), a zero byte, the weights
// (safetensors). SHA256 in the description becomes the weights' checksum, which no fuzzer would find.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "include/quicgym/controller.h"
#include "sim/policy/safetensors.hpp"
#include "sim/policy/sha256.hpp"
#include "tests/fuzz/input.hpp"

using namespace quicgym;
using fuzz::require;

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

// The description's path, in a folder of this process's own.
const std::filesystem::path& description_path() {
    static const std::filesystem::path path = [] {
        std::string folder = (std::filesystem::temp_directory_path() / "quicgym-fuzz-XXXXXX").string();
        require(::mkdtemp(folder.data()) != nullptr, "a temporary folder can be made");
        return std::filesystem::path(folder) / "policy.json";
    }();
    return path;
}

void write(const std::filesystem::path& path, std::string_view content) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << content;
    require(file.good(), "a temporary file can be written");
}

// What is read is a policy that can decide.
void decide(const quicgym_policy* policy) {
    quicgym_controller* const controller = quicgym_policy_controller_new(policy, 1200, 1, 0);
    require(controller != nullptr, "a policy that is read has a controller");
    std::int64_t due = 0;
    std::uint64_t number = 0;
    for (std::int64_t now = 0; now < 100 * kMillisecond; now += 10 * kMillisecond, ++number) {
        require(quicgym_on_sent(controller, now, number, 1200) == QUICGYM_OK, "a packet is taken");
        if (number > 0) {
            const std::uint64_t acknowledged = number - 1;
            require(quicgym_on_ack(controller, now, 0, &acknowledged, 1) == QUICGYM_OK, "an ACK is taken");
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
    const std::filesystem::path& path = description_path();
    write(path, description);
    write(std::filesystem::path(path).replace_extension(".safetensors"), weights);
    quicgym_policy* const read = quicgym_policy_load(path.c_str());
    if (read == nullptr) {
        require(std::string_view(quicgym_last_error()).find("policy.") != std::string_view::npos,
                "an error names the file");
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
