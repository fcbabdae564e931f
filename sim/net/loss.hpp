// Random loss on a wire, decided packet by packet in the order of transmission.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/base/time.hpp"
#include "sim/scenario.hpp"

namespace quicgym::net {

class LossProcess {
public:
    LossProcess(const Link& link, Random random)
        : model_(link.loss), schedule_(link.loss_schedule), random_(random) {}

    bool active() const { return model_.kind != LossKind::none || next_step_ < schedule_.size(); }

    // Whether the next packet is lost, whose transmission starts then. Draws the same numbers whatever the
    // outcome.
    bool lose_next(Time start) {
        while (next_step_ < schedule_.size() && schedule_[next_step_].at <= start) {
            model_ = schedule_[next_step_++].loss;
            bad_ = false;
        }
        switch (model_.kind) {
            case LossKind::none:
                return false;
            case LossKind::bernoulli:
                return random_.uniform() < model_.probability;
            case LossKind::gilbert_elliott: {
                const double move = random_.uniform();
                if (bad_) {
                    if (move < model_.bad_to_good) bad_ = false;
                } else if (move < model_.good_to_bad) {
                    bad_ = true;
                }
                return random_.uniform() < (bad_ ? model_.loss_in_bad : model_.loss_in_good);
            }
        }
        return false;
    }

private:
    LossModel model_;
    std::vector<LossStep> schedule_;
    std::size_t next_step_ = 0;
    Random random_;
    bool bad_ = false;
};

// Losses that are decided and lie in the future: a packet is lost where the wire ends.
class PendingLosses {
public:
    void add(Time loss, Time now) {
        if (losses_.size() == losses_.capacity()) losses_.erase(losses_.begin(), first_after(now));
        // At the end, unless packets overtake one another.
        losses_.insert(first_after(loss), loss);
    }
    std::uint64_t count(Time now) const {
        return static_cast<std::uint64_t>(losses_.end() - first_after(now));
    }

private:
    std::vector<Time>::const_iterator first_after(Time now) const {
        return std::upper_bound(losses_.begin(), losses_.end(), now);
    }

    std::vector<Time> losses_;  // ascending
};

}  // namespace quicgym::net
