// The sending half of a stream: what is new, what must be sent again, what flow control allows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/quic/frames.hpp"

namespace quicgym::quic {

struct StreamChunk {
    std::uint64_t offset;
    std::uint64_t length;
};

class SendStream {
public:
    explicit SendStream(std::uint64_t initial_limit)
        : data_limit_(initial_limit), stream_limit_(initial_limit) {}

    // `written`: the application's bytes so far.
    bool has_data(std::uint64_t written) const {
        return has_lost() || next_offset_ < std::min(written, limit());
    }
    bool has_lost() const { return first_lost_ < lost_.size(); }
    bool blocked(std::uint64_t written) const { return next_offset_ >= limit() && next_offset_ < written; }
    std::uint64_t limit() const { return std::min(data_limit_, stream_limit_); }
    std::uint64_t next_offset() const { return next_offset_; }

    // Where the next chunk starts; lost data goes first (RFC 9000 13.3).
    std::uint64_t next_chunk_offset() const { return has_lost() ? lost_[first_lost_].offset : next_offset_; }

    // Takes up to `room` bytes; call only when has_data().
    StreamChunk take(std::uint64_t room, std::uint64_t written) {
        if (has_lost()) {
            StreamChunk& front = lost_[first_lost_];
            const StreamChunk chunk{front.offset, std::min(room, front.length)};
            front.offset += chunk.length;
            front.length -= chunk.length;
            if (front.length == 0 && ++first_lost_ == lost_.size()) {
                lost_.clear();
                first_lost_ = 0;
            }
            return chunk;
        }
        const StreamChunk chunk{next_offset_, std::min(room, std::min(written, limit()) - next_offset_)};
        next_offset_ += chunk.length;
        return chunk;
    }

    void on_lost(StreamChunk chunk) {
        // Neighbours merge, so that a retransmission fills whole packets.
        if (has_lost() && lost_.back().offset + lost_.back().length == chunk.offset) {
            lost_.back().length += chunk.length;
            return;
        }
        if (first_lost_ > 0 && lost_.size() == lost_.capacity()) {
            lost_.erase(lost_.begin(), lost_.begin() + static_cast<std::ptrdiff_t>(first_lost_));
            first_lost_ = 0;
        }
        lost_.push_back(chunk);
    }

    void raise_data_limit(std::uint64_t limit) { data_limit_ = std::max(data_limit_, limit); }
    void raise_stream_limit(std::uint64_t limit) { stream_limit_ = std::max(stream_limit_, limit); }

private:
    std::uint64_t next_offset_ = 0;
    std::uint64_t data_limit_;
    std::uint64_t stream_limit_;
    std::vector<StreamChunk> lost_;  // from first_lost_ on; what lies before was sent again
    std::size_t first_lost_ = 0;
};

}  // namespace quicgym::quic
