// One thread at a time: a second one is refused instead of made to wait, since what it wants to read changes.
#pragma once

#include <atomic>
#include <stdexcept>
#include <thread>

namespace quicgym {

class OneThread {
public:
    // For as long as it lives the owner belongs to this thread. Throws std::runtime_error where it belongs to
    // another. Within a call of the same thread, as from a controller in Python, it may be taken again.
    class Use {
    public:
        explicit Use(OneThread& owner) : owner_(owner) {
            std::thread::id user;
            is_first_ = owner_.user_.compare_exchange_strong(user, std::this_thread::get_id());
            if (!is_first_ && user != std::this_thread::get_id()) {
                throw std::runtime_error(
                    "another thread is in a call to it that has not returned; wait for that, or give each "
                    "thread its own");
            }
        }
        ~Use() {
            if (is_first_) owner_.user_ = std::thread::id();
        }
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;

    protected:
        bool is_first() const { return is_first_; }

    private:
        OneThread& owner_;
        bool is_first_;
    };

    // For calls that must not happen within another one.
    class Alone : public Use {
    public:
        explicit Alone(OneThread& owner) : Use(owner) {
            if (!is_first()) throw std::runtime_error("called from within its own call");
        }
    };

private:
    std::atomic<std::thread::id> user_;
};

}  // namespace quicgym
