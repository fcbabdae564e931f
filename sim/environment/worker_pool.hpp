// Threads that work through a queue of numbered tasks together with the thread that asks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace quicgym::environment {

class WorkerPool {
public:
    // The caller counts as one of the threads.
    explicit WorkerPool(std::size_t threads) {
        for (std::size_t i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
    }
    ~WorkerPool() {
        {
            const std::lock_guard lock(mutex_);
            closing_ = true;
        }
        begun_.notify_all();
        for (std::thread& worker : workers_) worker.join();
    }
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    // Calls task(0) … task(count - 1), in any order, and returns when all are done. A task must not throw.
    template <class Task>
    void run(std::size_t count, Task&& task) {
        if (workers_.empty() || count <= 1) {
            for (std::size_t i = 0; i < count; ++i) task(i);
            return;
        }
        {
            const std::lock_guard lock(mutex_);
            task_ = std::ref(task);
            count_ = count;
            next_ = 0;
            busy_ = workers_.size();
            ++generation_;
        }
        begun_.notify_all();
        take_tasks();
        std::unique_lock lock(mutex_);
        finished_.wait(lock, [this] { return busy_ == 0; });
        task_ = nullptr;
    }

private:
    void take_tasks() {
        for (std::size_t i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) task_(i);
    }

    void work() {
        std::size_t seen = 0;
        for (;;) {
            {
                std::unique_lock lock(mutex_);
                begun_.wait(lock, [&] { return closing_ || generation_ != seen; });
                if (closing_) return;
                seen = generation_;
            }
            take_tasks();
            const std::lock_guard lock(mutex_);
            if (--busy_ == 0) finished_.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable begun_;
    std::condition_variable finished_;
    std::function<void(std::size_t)> task_;
    std::size_t count_ = 0;
    std::atomic<std::size_t> next_ = 0;
    std::size_t busy_ = 0;
    std::size_t generation_ = 0;
    bool closing_ = false;
    std::vector<std::thread> workers_;
};

}  // namespace quicgym::environment
