// A controller around another one, which decides; what wraps it changes the window and the pacing rate.
#pragma once

#include <memory>
#include <utility>

#include "controllers/controller.hpp"
#include "sim/base/value_pointer.hpp"

namespace quicgym {

// Every event and every parameter is the inner controller's. A subclass says in publish(), which follows
// each of them, what becomes of its window and pacing rate.
class Decorator : public Controller {
public:
    explicit Decorator(std::unique_ptr<Controller> inner)
        : Controller(inner->max_datagram_bytes()), inner_(std::move(inner)) {
        timer_ = inner_->timer();
    }

    bool wants_l4s() const override { return inner_->wants_l4s(); }
    void on_packet_sent(Time now, std::uint64_t bytes, std::uint64_t in_flight_bytes) override {
        inner_->on_packet_sent(now, bytes, in_flight_bytes);
        update();
    }
    void on_ack(const AckEvent& event) override {
        inner_->on_ack(event);
        update();
    }
    void on_packet_lost(const LostPacket& packet) override {
        inner_->on_packet_lost(packet);
        update();
    }
    void on_loss(const LossEvent& event) override {
        inner_->on_loss(event);
        update();
    }
    void on_persistent_congestion(Time now) override {
        inner_->on_persistent_congestion(now);
        update();
    }
    void on_spurious_loss(Time now) override {
        inner_->on_spurious_loss(now);
        update();
    }
    void on_ecn(const EcnEvent& event) override {
        inner_->on_ecn(event);
        update();
    }
    void on_timer(Time now) override {
        inner_->fire_timer(now);
        update();
    }
    void set_parameters(const ParameterValues& values) override {
        inner_->set_parameters(values);
        update();
    }
    ParameterValues parameters() const override { return inner_->parameters(); }
    ControllerSnapshot snapshot() const override {
        ControllerSnapshot result = inner_->snapshot();
        result.window_bytes = window_bytes();
        result.pacing_rate = pacing_rate();
        return result;
    }

protected:
    virtual void publish() = 0;
    const Controller& inner() const { return *inner_; }

private:
    void update() {
        publish();
        timer_ = inner_->timer();
    }

    ValuePointer<Controller> inner_;
};

}  // namespace quicgym
