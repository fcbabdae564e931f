// Any sequence of calls of the C interface, with any arguments, on any controller.
#include "real/embedding/quicgym/controller.h"

#include <bit>
#include <cmath>
#include <vector>

#include "controllers/catalogue.hpp"
#include "tests/fuzz/input.hpp"

using namespace quicgym;
using fuzz::require;

namespace {

constexpr int kMostCalls = 500;

// Ever larger powers of two: small numbers are as likely as large ones.
std::uint64_t any_number(fuzz::Input& input) {
    const std::uint8_t how = input.byte();
    return how < 192 ? how : (std::uint64_t{1} << (how - 192U)) + input.byte();
}

class Calls {
public:
    explicit Calls(fuzz::Input& input)
        : input_(input),
          specification_(catalogue()[input.byte() % catalogue().size()].specification),
          controller_(quicgym_controller_new(specification_.name.c_str(), 1200 + input.byte(), 1, 0)) {
        require(controller_ != nullptr, "a controller can be made");
    }
    ~Calls() { quicgym_controller_free(controller_); }
    Calls(const Calls&) = delete;
    Calls& operator=(const Calls&) = delete;

    void run() {
        for (int call = 0; call < kMostCalls && !input_.empty(); ++call) {
            const std::uint8_t choice = input_.byte();
            pass_time(choice >> 4U);
            const int result = make(choice & 15U);
            require(result == QUICGYM_OK || result == QUICGYM_INVALID, quicgym_last_error());
            check();
        }
    }

private:
    void pass_time(unsigned how) {
        if (how > 0) now_ += std::int64_t{1} << (2U * how + 8U);  // 1 µs to 275 s
    }

    int make(unsigned call) {
        switch (call) {
            case 0:
                return quicgym_on_handshake(controller_, now_, static_cast<std::int64_t>(any_number(input_)));
            case 1:
                return quicgym_on_ecn(controller_, now_, any_number(input_));
            case 2:
                return quicgym_on_persistent_congestion(controller_, now_);
            case 3:
                return (input_.byte() & 1U) != 0 ? quicgym_on_app_limited(controller_, now_)
                                                 : quicgym_on_window_unused(controller_, now_);
            case 4:
                return quicgym_set_application(controller_, any_number(input_), any_number(input_));
            case 5:
                return set_parameter();
            case 6:
            case 7:
                return quicgym_on_loss(controller_, now_, numbers(), numbers_.size());
            case 8:
            case 9:
            case 10:
                return quicgym_on_ack(controller_, now_, static_cast<std::int64_t>(any_number(input_)),
                                      numbers(), numbers_.size());
            case 11:  // any number and size
                return quicgym_on_sent(controller_, now_, any_number(input_), any_number(input_));
            case 12:  // a time before
                return quicgym_on_sent(controller_, static_cast<std::int64_t>(any_number(input_)), next_,
                                       1200);
            default:
                return send(1 + input_.byte() % 16U);
        }
    }

    int send(unsigned count) {
        int result = QUICGYM_OK;
        for (unsigned i = 0; i < count && result == QUICGYM_OK; ++i) {
            result = quicgym_on_sent(controller_, now_, next_, 1200);
            if (result == QUICGYM_OK) ++next_;
        }
        return result;
    }

    int set_parameter() {
        const auto& parameters = specification_.parameters;
        const std::uint8_t which = input_.byte();
        if (parameters.empty()) return quicgym_set_parameter(controller_, "none", nullptr, 0);
        const ParameterSpecification& parameter = parameters[which % parameters.size()];
        std::vector<double> values(parameter.is_list ? input_.byte() % 16U : 1);
        for (double& value : values) {
            value = (input_.byte() & 1U) != 0
                        ? std::bit_cast<double>(input_.number(8))
                        : parameter.minimum + std::min(parameter.maximum - parameter.minimum, 1e6) *
                                                  static_cast<double>(input_.byte()) / 255.0;
        }
        return quicgym_set_parameter(controller_, parameter.name.c_str(), values.data(), values.size());
    }

    // Packets around the ones that were sent last.
    const std::uint64_t* numbers() {
        numbers_.clear();
        std::uint64_t number = next_ - std::min<std::uint64_t>(next_, input_.byte());
        for (unsigned count = input_.byte() % 32U; count > 0; --count) {
            numbers_.push_back(number);
            number += 1 + (input_.byte() & 3U);
        }
        return numbers_.data();
    }

    void check() {
        require(quicgym_window_bytes(controller_) > 0, "a window is above 0");
        require(quicgym_pacing_rate_bytes_per_s(controller_) >= 0.0, "a pacing rate is not below 0");
        quicgym_snapshot_t snapshot;
        require(quicgym_snapshot(controller_, &snapshot) == QUICGYM_OK, quicgym_last_error());
        require(snapshot.smoothed_rtt_ns >= 0 && snapshot.min_rtt_ns >= 0, "an RTT is not below 0");
    }

    fuzz::Input& input_;
    const ControllerSpecification& specification_;
    quicgym_controller* controller_;
    std::int64_t now_ = 0;
    std::uint64_t next_ = 0;
    std::vector<std::uint64_t> numbers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    Calls(input).run();
    return 0;
}
