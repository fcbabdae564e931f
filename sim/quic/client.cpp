#include "sim/quic/client.hpp"

#include <algorithm>

#include "sim/base/random.hpp"
#include "sim/base/size_distribution.hpp"

namespace quicgym::quic {

void Client::on_data(Time now, std::uint64_t bytes_in_order) {
    while (answered_ < requests_.size() &&
           answered_bytes_ + requests_[answered_].size_bytes <= bytes_in_order) {
        Transfer& answered = requests_[answered_];
        answered_bytes_ += answered.size_bytes;
        if (answered.size_bytes > 0) {  // no skipped frame
            answered.completion = now;
            on_response(now, answered_);
        }
        ++answered_;
    }
}

void Client::request(Time now, std::uint64_t response_bytes) {
    ++asked_;
    requested_bytes_ += response_bytes;
    requests_.push_back({.start = now, .size_bytes = response_bytes});
}

namespace {

// Asks, reads the response, thinks, and asks again.
class RequestResponse final : public Client {
public:
    RequestResponse(const Application& application, Random random)
        : sizes_(application.response_sizes), think_time_(application.think_time), random_(random) {}
    std::unique_ptr<Client> clone() const override { return std::make_unique<RequestResponse>(*this); }

    void start(Time now) override { request(now, sizes_.draw(random_)); }
    void on_timeout(Time now) override {
        next_timeout_ = kNever;
        request(now, sizes_.draw(random_));
    }

private:
    void on_response(Time now, std::size_t) override { next_timeout_ = now + think_time_; }

    SizeDistribution sizes_;
    Time think_time_;
    Random random_;
};

// Asks for every object of a page as soon as the objects that name it are there.
class WebPage final : public Client {
public:
    explicit WebPage(const Application& application) : objects_(application.objects) {
        missing_.reserve(objects_.size());
        for (const PageObject& object : objects_) missing_.push_back(object.after.size());
    }
    std::unique_ptr<Client> clone() const override { return std::make_unique<WebPage>(*this); }

    void start(Time now) override {
        for (std::size_t object = 0; object < objects_.size(); ++object) {
            if (missing_[object] == 0) ask_for(now, object);
        }
    }

private:
    void ask_for(Time now, std::size_t object) {
        order_.push_back(object);
        request(now, objects_[object].size_bytes);
    }
    void on_response(Time now, std::size_t number) override {
        const std::size_t arrived = order_[number];
        for (std::size_t object = 0; object < objects_.size(); ++object) {
            const auto& after = objects_[object].after;
            if (std::find(after.begin(), after.end(), arrived) != after.end() && --missing_[object] == 0)
                ask_for(now, object);
        }
    }

    std::vector<PageObject> objects_;
    std::vector<std::size_t> missing_;  // by object: how many of those that it waits for
    std::vector<std::size_t> order_;    // of the requests
};

// Plays chunks of video. It asks for one at a time, at the rate that its buffer allows, and waits while the
// buffer has no room for another. Playing begins with the first chunk, and stops while the buffer is empty.
class Video final : public Client {
public:
    Video(const Application& application, Time stop) : video_(application), stop_(stop) {}
    std::unique_ptr<Client> clone() const override { return std::make_unique<Video>(*this); }

    void start(Time now) override { ask(now); }
    void on_timeout(Time now) override {
        next_timeout_ = kNever;
        play_until(now);
        ask(now);
    }
    void add_statistics(Time now, FlowStatistics& statistics) const override {
        Video later = *this;
        later.play_until(now);
        statistics.playing_seconds = to_seconds(later.playing_);
        statistics.stalled_seconds = to_seconds(later.stalled_);
    }

private:
    void ask(Time now) {
        rate_ = choose_rate(video_, rate_, buffered_);
        const auto bits = static_cast<unsigned __int128>(video_.rates_bits_per_second[rate_]) *
                          static_cast<std::uint64_t>(video_.chunk_duration) / 1'000'000'000U;
        request(now, std::max<std::uint64_t>(1, static_cast<std::uint64_t>(bits) / 8));
    }
    void on_response(Time now, std::size_t) override {
        play_until(now);
        started_ = true;
        buffered_ += video_.chunk_duration;
        const Time excess = buffered_ + video_.chunk_duration - video_.max_buffer;
        next_timeout_ = now + std::max<Time>(0, excess);
    }
    void play_until(Time now) {
        const Time until = std::min(now, stop_);  // nobody waits for the video of a flow that has stopped
        const Time elapsed = until - played_until_;
        played_until_ = until;
        if (!started_) return;
        const Time played = std::min(elapsed, buffered_);
        buffered_ -= played;
        playing_ += played;
        stalled_ += elapsed - played;
    }

    Application video_;
    Time stop_;
    std::size_t rate_ = 0;
    bool started_ = false;
    Time buffered_ = 0;  // of video, at played_until_
    Time played_until_ = 0;
    Time playing_ = 0;
    Time stalled_ = 0;
};

// Shows frames as they arrive.
class Viewer final : public Client {
public:
    std::unique_ptr<Client> clone() const override { return std::make_unique<Viewer>(*this); }
    void start(Time) override {}

private:
    void on_response(Time, std::size_t) override {}
};

}  // namespace

std::size_t choose_rate(const Application& video, std::size_t previous, Time buffered) {
    const auto& rates = video.rates_bits_per_second;
    const std::size_t highest = rates.size() - 1;
    if (buffered <= video.reservoir) return 0;
    if (buffered >= video.reservoir + video.cushion) return highest;
    // The rate map: a straight line across the cushion, from the lowest rate to the highest.
    const double part = static_cast<double>(buffered - video.reservoir) / static_cast<double>(video.cushion);
    const double mapped =
        static_cast<double>(rates.front()) + part * static_cast<double>(rates.back() - rates.front());
    const auto rate = [&](std::size_t index) { return static_cast<double>(rates[index]); };
    if (mapped >= rate(std::min(previous + 1, highest))) {
        std::size_t index = highest;
        while (index > 0 && rate(index) >= mapped) --index;  // the highest below the map
        return index;
    }
    if (mapped <= rate(previous > 0 ? previous - 1 : 0)) {
        std::size_t index = 0;
        while (index < highest && rate(index) <= mapped) ++index;  // the lowest above the map
        return index;
    }
    return previous;
}

std::unique_ptr<Client> make_client(const Flow& flow, std::size_t flow_index, std::uint64_t seed) {
    const Application& application = flow.application;
    switch (application.kind) {
        case ApplicationKind::request_response:
            return std::make_unique<RequestResponse>(application,
                                                     Random(seed, RandomPurpose::client, flow_index));
        case ApplicationKind::web_page:
            return std::make_unique<WebPage>(application);
        case ApplicationKind::video:
            return std::make_unique<Video>(application, flow.stop);
        case ApplicationKind::real_time_media:
            return std::make_unique<Viewer>();
        case ApplicationKind::bulk:
        case ApplicationKind::transfer:
        case ApplicationKind::constant_rate:
        case ApplicationKind::bursts:
        case ApplicationKind::on_off:
            break;
    }
    return nullptr;
}

}  // namespace quicgym::quic
