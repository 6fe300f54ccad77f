#pragma once

#include <span>
#include <vector>

#include "comm/transport/byte_stream.hpp"
#include "comm/transport/message_header.hpp"

namespace isthmus {

/// Turns frames into a byte stream. Small frames are copied and leave together; the payload of at
/// most one frame at a time is written straight from the operation's memory.
class FrameWriter {
public:
    bool isEmpty() const { return written_ == buffer_.size() && piece_ == nullptr; }
    bool isStreaming() const { return piece_ != nullptr; }
    std::size_t bufferedBytes() const { return buffer_.size() - written_; }

    /// Copies bytes that are whole frames already. Not while isStreaming.
    void append(std::span<const std::byte> frames);
    /// Queues header.payloadBytes of `operation` from header.offset on. Copied when `copies`, else
    /// the operation's memory is used until finished() gives it back. Not while isStreaming.
    void append(const FrameHeader& header, Operation& operation, bool copies);

    /// Writes what the stream takes. One call of the stream at most.
    Moved flush(OutStream& stream);

    /// The operation whose frame was written whole by the last flush, once.
    Operation* finished();

    /// The operation being streamed from, if any.
    Operation* streaming() const { return piece_; }
    /// Copies what is left of the frame under way, so that the operation's memory is free.
    void detach();
    /// Forgets everything: the stream is gone.
    void drop();

private:
    std::vector<std::byte> buffer_;
    std::size_t written_ = 0;  // of buffer_

    Operation* piece_ = nullptr;
    Operation* finished_ = nullptr;
    std::uint64_t pieceOffset_ = 0;
    std::uint64_t pieceLeft_ = 0;
    std::vector<iovec> pieces_;
};

}  // namespace isthmus
