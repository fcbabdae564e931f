// A thread that works in real time until it is told to stop.
#pragma once

#include <unistd.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace quicgym::relay {

// start() is called once. All other functions may be called by several threads at once.
class Worker {
public:
    Worker() = default;
    ~Worker() {
        if (is_forked()) {
            // The thread is in the other process, and waiting for it here would never end.
            static_cast<void>(thread_.release());
        } else {
            stopping_ = true;
            join();
        }
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    template <class Work>
    void start(Work work) {
        const std::lock_guard lock(joining_);
        thread_ = std::make_unique<std::thread>([this, work = std::move(work)] {
            try {
                work();
            } catch (...) {
                error_ = std::current_exception();
            }
            has_ended_ = true;
        });
        process_ = getpid();
    }
    // Ends the work. Throws once what ended the work before.
    void stop() {
        refuse_in_forked_process();
        stopping_ = true;
        join();
        if (error_ && !has_thrown_.exchange(true)) std::rethrow_exception(error_);
    }

    // Throws std::logic_error in a process that was forked after start().
    void refuse_in_forked_process() const {
        if (is_forked()) {
            throw std::logic_error(
                "started before this process was forked, and threads do not come along; make a new one after "
                "the fork");
        }
    }
    bool has_started() const { return process_ != 0; }
    bool is_stopping() const { return stopping_; }
    bool has_ended() const { return has_ended_; }

private:
    bool is_forked() const { return has_started() && process_ != getpid(); }
    void join() {
        const std::lock_guard lock(joining_);
        if (thread_ && thread_->joinable()) thread_->join();
    }

    std::atomic<pid_t> process_ = 0;
    std::atomic<bool> stopping_ = false;
    std::atomic<bool> has_ended_ = false;
    std::exception_ptr error_;
    std::atomic<bool> has_thrown_ = false;
    std::mutex joining_;
    std::unique_ptr<std::thread> thread_;
};

}  // namespace quicgym::relay
