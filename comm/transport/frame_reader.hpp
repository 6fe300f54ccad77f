#pragma once

#include <memory>
#include <vector>

#include "comm/transport/byte_stream.hpp"
#include "comm/transport/message_header.hpp"

namespace isthmus {

/// Who wants the frames of a stream.
class FrameSink {
public:
    virtual ~FrameSink() = default;

    /// A valid header arrived. Appends to `target` the memory for exactly header.payloadBytes, or
    /// nothing: the payload is read and thrown away. A failure ends the stream.
    virtual Status begin(const FrameHeader& header, std::vector<iovec>& target) = 0;
    /// The payload is in place.
    virtual Status end(const FrameHeader& header) = 0;
};

/// Turns a byte stream into frames. Payloads of large frames go straight to where the sink wants
/// them; the rest passes through a small buffer, so that one read brings many small frames.
class FrameReader {
public:
    explicit FrameReader(FrameSink& sink) : sink_(sink) {}

    /// Reads until the stream has nothing more or about `budgetBytes` arrived. A failure (of the
    /// stream, the bytes or the sink) is final.
    Moved read(InStream& stream, std::size_t budgetBytes);

    /// The next bytes of a stream that gives them instead of being read: whole frames are taken
    /// from where they are.
    Status take(std::span<const std::byte> bytes);

    /// Throws the rest of the payload under way away: its memory is free after this.
    void discard();

private:
    void makeStage();
    Moved readOnce(InStream& stream);
    Status digestStage();
    Status digest();
    Status startFrame();
    void takePayload();
    void advanceTarget(std::size_t bytes);

    static constexpr std::size_t kStageBytes = 32 * 1024;  // pages that nothing reaches stay unused

    FrameSink& sink_;
    std::unique_ptr<std::byte[]> stage_;
    std::size_t staged_ = 0;                 // bytes of it: less than a header, between two calls
    std::span<const std::byte> undigested_;  // inside a call

    FrameHeader header_;
    std::uint64_t left_ = 0;  // of the payload under way
    bool isInFrame_ = false;
    bool isDiscarding_ = false;
    std::vector<iovec> target_;
    std::size_t targetAt_ = 0;
    std::vector<iovec> pieces_;
};

}  // namespace isthmus
