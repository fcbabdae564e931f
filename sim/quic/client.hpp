// The receiving application that asks for what its peer sends (request and response, a web page, adaptive
// video), or that shows the frames of real-time media.
//
// A request travels to the sender in a separate packet, over the reverse path, and is sent again when it is
// lost (receiver.hpp). Responses come back over the one stream, in the order of the requests.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/time.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace quicgym::quic {

class Client {
public:
    Client() = default;
    virtual ~Client() = default;
    Client& operator=(const Client&) = delete;
    virtual std::unique_ptr<Client> clone() const = 0;

    virtual void start(Time now) = 0;  // the connection is open
    // The stream has come so far, without a gap.
    void on_data(Time now, std::uint64_t bytes_in_order);
    virtual void on_timeout(Time /*now*/) {}
    Time next_timeout() const { return next_timeout_; }  // kNever: it waits for data

    // The size of all responses requested so far.
    std::uint64_t requested_bytes() const { return requested_bytes_; }
    std::size_t asked() const { return asked_; }  // number of requests so far
    // One record for each request: when it was made, and when the last byte of its response arrived. Of
    // real-time media, one for each frame: when it was captured, and when its last byte arrived.
    const std::vector<Transfer>& requests() const { return requests_; }
    // The sender has captured a frame. The simulation carries no content, hence the viewer learns of frames
    // in this way and not from their headers. A skipped frame has 0 bytes and never arrives.
    void on_frame(Time captured, std::uint64_t bytes) {
        requests_.push_back({.start = captured, .size_bytes = bytes});
    }
    virtual void add_statistics(Time /*now*/, FlowStatistics& /*statistics*/) const {}

protected:
    Client(const Client&) = default;  // for clone()

    void request(Time now, std::uint64_t response_bytes);
    virtual void on_response(Time now, std::size_t request) = 0;  // by its number, from 0

    Time next_timeout_ = kNever;

private:
    std::uint64_t requested_bytes_ = 0;
    std::uint64_t answered_bytes_ = 0;
    std::size_t asked_ = 0;
    std::size_t answered_ = 0;
    std::vector<Transfer> requests_;
};

// Null: the flow's application writes by itself. `flow_index` and `seed` give its random stream.
std::unique_ptr<Client> make_client(const Flow& flow, std::size_t flow_index, std::uint64_t seed);

// Huang et al., "A Buffer-Based Approach to Rate Adaptation", SIGCOMM 2014, section 4, algorithm 1 (BBA-0):
// which of the ascending rates the next chunk has, by the rate of the one before and by what the buffer
// holds.
std::size_t choose_rate(const Application& video, std::size_t previous, Time buffered);

}  // namespace quicgym::quic
