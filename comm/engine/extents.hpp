#pragma once

#include <cstddef>
#include <vector>

#include "comm/engine/call.hpp"
#include "comm/plan/chunking.hpp"
#include "comm/plan/operand.hpp"
#include "comm/plan/plan.hpp"

namespace isthmus {

/// Gives each chunk of a Plan its place, for one call cut into `segments`. Refers to both
/// arguments.
class Extents {
public:
    Extents(const Plan& plan, const CallRequest& call, int segments);

    /// For an all-to-all with counts, instead of segments: a pass moves up to `pieceElements` of
    /// each block between ranks of my node (those with a position in `positionOf`, which is kept
    /// by reference); other blocks go whole in the first pass.
    void cutBlocks(std::size_t pieceElements, const std::vector<int>& positionOf);

    /// Where an input or output location of mine, or of a peer whose blocks lie like mine, begins
    /// in its buffer.
    std::size_t offsetOf(const Location& location, int segment) const;
    /// Where the part of a chunk that moves in `segment` begins in its block.
    std::size_t offsetInBlock(const ChunkName& name, int segment) const;
    /// Bytes of a chunk of the operand in `segment`.
    std::size_t bytesIn(const ChunkName& name, int segment) const;
    /// Chunks of my input, and the bytes of one in `segment`.
    int inputChunks() const { return operand_.inputChunks(plan_.me); }
    std::size_t inputBytesIn(int chunk, int segment) const {
        return bytesIn(operand_.meaning({plan_.me, Buffer::kInput, chunk}), segment);
    }
    /// The most that a slot of scratch named so needs in any segment.
    std::size_t scratchCapacity(const ChunkName& like) const;

    /// Of the whole buffers of this rank (0 when it has none).
    std::size_t inputBytes() const;
    std::size_t outputBytes() const;

private:
    std::size_t elementsOf(const ChunkName& name) const;
    ElementRun runOf(const ChunkName& name, int segment) const;
    bool isCut(const ChunkName& name) const;
    std::size_t blockOffset(bool isInput, int block) const;
    std::size_t bufferBytes(Buffer buffer, int blocks) const;

    const Plan& plan_;
    const CallRequest& call_;
    Operand operand_;
    int segments_;
    std::size_t elementBytes_;
    std::size_t pieceElements_ = 0;
    const std::vector<int>* positionOf_ = nullptr;
    std::vector<std::size_t> inputOffsets_;  // of blocks, in elements; empty when uniform
    std::vector<std::size_t> outputOffsets_;
};

}  // namespace isthmus
