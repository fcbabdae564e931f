// The sending application: how many stream bytes it has written by when.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/time.hpp"
#include "sim/base/value_pointer.hpp"
#include "sim/quic/media_encoder.hpp"
#include "sim/quic/send_stream.hpp"
#include "sim/scenario.hpp"

namespace quicgym::quic {

// Timed applications write messages of one datagram each; bulk and transfer write all at once; real-time
// media writes the frames that capture() encodes; the others write what they are asked for.
class ApplicationSource {
public:
    ApplicationSource(const Application& application, std::uint64_t message_bytes, Time start);

    // Stream bytes written up to and at `now`; time never goes back.
    std::uint64_t written_bytes(Time now) {
        while (next_write_ <= now) write();
        return written_;
    }
    // The same, of both streams.
    Written written(Time now) { return {written_bytes(now), bursts_ ? burst_bytes(now) : 0}; }
    Time next_write() const {  // kNever: no more
        return bursts_ ? std::min(next_write_, bursts_->next_write_) : next_write_;
    }
    Time next_frame() const { return next_frame_; }  // kNever: the application is no real-time media
    // Captures a frame. `rate`, in bytes per second, is what the controller allows, and `unsent_bytes` waits.
    // Returns the bytes of the frame; 0: the encoder skips it.
    std::uint64_t capture(Time now, double rate, std::uint64_t unsent_bytes) {
        next_frame_ = now + kFrameInterval;
        const std::uint64_t frame_bytes = encoder_.encode(rate, unsent_bytes);
        written_ += frame_bytes;
        return frame_bytes;
    }
    bool finite() const { return finite_; }
    std::uint64_t total_bytes() const { return total_; }  // of a finite application

    // The peer has asked for so many bytes so far.
    void on_request(std::uint64_t requested_bytes) {
        if (answers_)
            written_ = std::max(written_, finite_ ? std::min(requested_bytes, total_) : requested_bytes);
    }

private:
    void write();
    [[gnu::cold, gnu::noinline]] std::uint64_t burst_bytes(Time now) { return bursts_->written_bytes(now); }
    std::uint64_t rate_at(Time time) const;
    Time next_rate_change(Time time) const;

    Application application_;
    Time start_;
    std::uint64_t message_bytes_;
    std::uint64_t written_ = 0;
    std::uint64_t total_ = 0;
    Time next_write_ = kNever;
    ValuePointer<ApplicationSource> bursts_;  // there: they go over a stream of their own
    Time next_frame_ = kNever;
    MediaEncoder encoder_;
    bool finite_ = false;
    bool answers_ = false;  // writes what it is asked for
};

}  // namespace quicgym::quic
