// The sending half of the streams: what is new, what must be sent again, what flow control allows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/value_pointer.hpp"
#include "sim/quic/frames.hpp"

namespace quicgym::quic {

struct StreamChunk {
    std::uint64_t offset;  // of the second stream: with kSecondStream
    std::uint64_t length;
};

// Stream bytes that an application has written so far. The second stream is that of bursts, where they have
// one.
struct Written {
    std::uint64_t bytes = 0;
    std::uint64_t second_bytes = 0;

    std::uint64_t total() const { return bytes + second_bytes; }
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
    void on_sent_elsewhere(std::uint64_t bytes) { data_limit_ -= bytes; }  // by another stream
    void raise_stream_limit(std::uint64_t limit) { stream_limit_ = std::max(stream_limit_, limit); }

private:
    std::uint64_t next_offset_ = 0;
    std::uint64_t data_limit_;
    std::uint64_t stream_limit_;
    std::vector<StreamChunk> lost_;  // from first_lost_ on; what lies before was sent again
    std::size_t first_lost_ = 0;
};

// The one stream of a connection or, with bursts on a stream of their own, both. Lost data goes first, and
// new data of the two takes turns, a packet each. The peer grants credit for both together.
class SendStreams {
public:
    static constexpr std::uint64_t kSecondStream = 1ULL << 62;  // beyond all offsets (RFC 9000 19.8)

    SendStreams(std::uint64_t initial_limit, bool two)
        : first_(initial_limit), second_(two ? std::make_unique<Second>(initial_limit) : nullptr) {}

    bool has_data(Written written) const {
        return first_.has_data(written.bytes) || (second_ && second_has_data(written));
    }
    bool has_lost() const { return first_.has_lost() || (second_ && second_has_lost()); }
    bool blocked(Written written) const {
        return first_.blocked(written.bytes) || (second_ && second_is_blocked(written));
    }
    // The connection's limit, and how much of it has been used.
    std::uint64_t limit() const { return first_.limit() + second_bytes(); }
    std::uint64_t next_offset() const { return first_.next_offset() + second_bytes(); }

    // See SendStream. With two streams, the take() that follows uses the same stream.
    std::uint64_t next_chunk_offset(Written written) const {
        if (second_ && is_turn_of_second(written)) [[unlikely]]
            return second_->stream.next_chunk_offset() | kSecondStream;
        return first_.next_chunk_offset();
    }
    StreamChunk take(std::uint64_t room, Written written) {
        if (second_) [[unlikely]]
            return take_of_two(room, written);
        return first_.take(room, written.bytes);
    }
    void on_lost(StreamChunk chunk) {
        if ((chunk.offset & kSecondStream) == 0) return first_.on_lost(chunk);
        second_->stream.on_lost({chunk.offset & ~kSecondStream, chunk.length});
    }

    void raise_data_limit(std::uint64_t limit) {
        if (second_) second_->stream.raise_data_limit(limit - first_.next_offset());
        first_.raise_data_limit(limit - second_bytes());
    }
    void raise_stream_limit(std::uint64_t limit) { first_.raise_stream_limit(limit); }

private:
    struct Second {
        explicit Second(std::uint64_t initial_limit) : stream(initial_limit) {
            stream.raise_stream_limit(UINT64_MAX);  // the connection's alone holds
        }
        SendStream stream;
        bool is_next = false;
    };

    // Out of the way of what every packet passes.
    [[gnu::cold, gnu::noinline]] bool second_has_data(Written written) const {
        return second_->stream.has_data(written.second_bytes);
    }
    [[gnu::cold, gnu::noinline]] bool second_has_lost() const { return second_->stream.has_lost(); }
    [[gnu::cold, gnu::noinline]] bool second_is_blocked(Written written) const {
        return second_->stream.blocked(written.second_bytes);
    }
    std::uint64_t second_bytes() const { return second_ ? second_->stream.next_offset() : 0; }

    [[gnu::cold, gnu::noinline]] bool is_turn_of_second(Written written) const {
        if (first_.has_lost() || second_->stream.has_lost()) return !first_.has_lost();
        if (!second_->stream.has_data(written.second_bytes)) return false;
        return second_->is_next || !first_.has_data(written.bytes);
    }

    [[gnu::cold, gnu::noinline]] StreamChunk take_of_two(std::uint64_t room, Written written) {
        const bool of_second = is_turn_of_second(written);
        SendStream& stream = of_second ? second_->stream : first_;
        const bool is_new = !stream.has_lost();
        StreamChunk chunk = stream.take(room, of_second ? written.second_bytes : written.bytes);
        if (is_new) {
            (of_second ? first_ : second_->stream).on_sent_elsewhere(chunk.length);
            second_->is_next = !of_second;
        }
        if (of_second) chunk.offset |= kSecondStream;
        return chunk;
    }

    SendStream first_;
    ValuePointer<Second> second_;
};

}  // namespace quicgym::quic
