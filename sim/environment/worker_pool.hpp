// Threads that work through a queue of numbered tasks together with the thread that asks.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace quicgym::environment {

class WorkerPool {
public:
    // The caller counts as one of the threads. Throws std::system_error where one cannot be started.
    explicit WorkerPool(std::size_t threads) : shared_(std::make_unique<Shared>()) {
        try {
            for (std::size_t i = 1; i < threads; ++i) {
                shared_->workers.emplace_back([&shared = *shared_] { shared.work(); });
            }
        } catch (...) {
            shared_->close();
            throw;
        }
    }
    ~WorkerPool() {
        if (is_forked()) {
            // Its threads are in the other process, and waiting for them here would never end.
            static_cast<void>(shared_.release());
        } else {
            shared_->close();
        }
    }
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    // Calls task(0) … task(count - 1), in any order, and returns when all are done. A task must not throw.
    // Throws std::runtime_error in a process that was forked after the threads had started.
    template <class Task>
    void run(std::size_t count, Task&& task) {
        if (shared_->workers.empty() || count <= 1) {
            for (std::size_t i = 0; i < count; ++i) task(i);
            return;
        }
        if (is_forked()) {
            throw std::runtime_error(
                "made before this process was forked, and threads do not come along; make it after the "
                "fork, or start processes by spawn");
        }
        shared_->run(count, std::ref(task));
    }

private:
    struct Shared {
        void run(std::size_t tasks, std::function<void(std::size_t)> called) {
            {
                const std::lock_guard lock(mutex);
                task = std::move(called);
                count = tasks;
                next = 0;
                busy = workers.size();
                ++generation;
            }
            begun.notify_all();
            take_tasks();
            std::unique_lock lock(mutex);
            finished.wait(lock, [this] { return busy == 0; });
            task = nullptr;
        }

        void take_tasks() {
            for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(i);
        }

        void work() {
            std::size_t seen = 0;
            for (;;) {
                {
                    std::unique_lock lock(mutex);
                    begun.wait(lock, [&] { return closing || generation != seen; });
                    if (closing) return;
                    seen = generation;
                }
                take_tasks();
                const std::lock_guard lock(mutex);
                if (--busy == 0) finished.notify_one();
            }
        }

        void close() {
            {
                const std::lock_guard lock(mutex);
                closing = true;
            }
            begun.notify_all();
            for (std::thread& worker : workers) worker.join();
        }

        std::mutex mutex;
        std::condition_variable begun;
        std::condition_variable finished;
        std::function<void(std::size_t)> task;
        std::size_t count = 0;
        std::atomic<std::size_t> next = 0;
        std::size_t busy = 0;
        std::size_t generation = 0;
        bool closing = false;
        std::vector<std::thread> workers;
    };

    bool is_forked() const { return getpid() != process_; }

    const pid_t process_ = getpid();
    std::unique_ptr<Shared> shared_;
};

}  // namespace quicgym::environment
