#pragma once

#include <array>
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

    /// Throws the rest of the payload under way away: its memory is free after this.
    void discard();

private:
    Moved readOnce(InStream& stream);
    Status digest();
    Status startFrame();
    void takeStaged();
    void advanceTarget(std::size_t bytes);

    static constexpr std::size_t kStageBytes = 32 * 1024;  // pages that nothing reaches stay unused

    FrameSink& sink_;
    std::unique_ptr<std::byte[]> stage_;  // [stageBegin_, stageEnd_) was read and not digested yet
    std::size_t stageBegin_ = 0;
    std::size_t stageEnd_ = 0;

    FrameHeader header_;
    std::uint64_t left_ = 0;  // of the payload under way
    bool isInFrame_ = false;
    bool isDiscarding_ = false;
    std::vector<iovec> target_;
    std::size_t targetAt_ = 0;
    std::vector<iovec> pieces_;
};

}  // namespace isthmus
