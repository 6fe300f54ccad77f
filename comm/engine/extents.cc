#include "comm/engine/extents.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus {

namespace {

std::vector<std::size_t> prefixOf(const std::vector<std::size_t>& counts) {
    std::vector<std::size_t> offsets(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), std::size_t{0});
    return offsets;
}

}  // namespace

Extents::Extents(const Plan& plan, const CallRequest& call, int segments)
    : plan_(plan),
      call_(call),
      operand_(Operand::of(plan)),
      segments_(segments),
      elementBytes_(bytesOf(call.type)) {
    const bool isExchange = call.collective == Collective::kAllToAll;
    inputOffsets_ = prefixOf(isExchange ? call.counts.sent : call.counts.each);
    outputOffsets_ = prefixOf(isExchange ? call.counts.received : call.counts.each);
}

std::size_t Extents::elementsOf(const ChunkName& name) const {
    const BlockCounts& counts = call_.counts;
    if (call_.collective == Collective::kAllToAll && !counts.sent.empty()) {
        const int source = name.block / plan_.ranks;
        const int destination = name.block % plan_.ranks;
        return source == plan_.me ? counts.sent[destination] : counts.received[source];
    }
    return counts.each.empty() ? counts.uniform : counts.each[name.block];
}

std::size_t Extents::blockOffset(bool isInput, int block) const {
    const auto& offsets = isInput ? inputOffsets_ : outputOffsets_;
    return offsets.empty() ? call_.counts.uniform * static_cast<std::size_t>(block)
                           : offsets[block];
}

void Extents::cutBlocks(std::size_t pieceElements, const std::vector<int>& positionOf) {
    pieceElements_ = pieceElements;
    positionOf_ = &positionOf;
}

bool Extents::isCut(const ChunkName& name) const {
    return pieceElements_ > 0 && (*positionOf_)[name.block / plan_.ranks] >= 0 &&
           (*positionOf_)[name.block % plan_.ranks] >= 0;
}

ElementRun Extents::runOf(const ChunkName& name, int segment) const {
    const auto elements = static_cast<std::int64_t>(elementsOf(name));
    if (pieceElements_ == 0)
        return chunkOf(plan_.chunking, name.chunk, elements, segment, segments_);
    const std::int64_t piece = isCut(name) ? static_cast<std::int64_t>(pieceElements_)
                                           : std::max<std::int64_t>(elements, 1);
    const std::int64_t begin = segment > elements / piece ? elements : piece * segment;
    ElementRun run = chunkOf(plan_.chunking, name.chunk, std::min(piece, elements - begin));
    run.offset += begin;
    return run;
}

std::size_t Extents::offsetInBlock(const ChunkName& name, int segment) const {
    return static_cast<std::size_t>(runOf(name, segment).offset) * elementBytes_;
}

std::size_t Extents::offsetOf(const Location& location, int segment) const {
    const bool isInput = location.buffer == Buffer::kInput;
    const ChunkName name = operand_.meaning(location);
    // A buffer of one block begins with it, whichever block of the operand that is.
    const int blocks =
        isInput ? operand_.inputBlocks(location.rank) : operand_.outputBlocks(location.rank);
    const std::size_t base =
        blocks == 1 ? 0 : blockOffset(isInput, location.chunk / operand_.chunksPerBlock);
    return base * elementBytes_ + offsetInBlock(name, segment);
}

std::size_t Extents::bytesIn(const ChunkName& name, int segment) const {
    return static_cast<std::size_t>(runOf(name, segment).elements) * elementBytes_;
}

std::size_t Extents::scratchCapacity(const ChunkName& like) const {
    const auto elements = static_cast<std::int64_t>(elementsOf(like));
    const std::int64_t longest = isCut(like)
                                     ? std::min(elements, static_cast<std::int64_t>(pieceElements_))
                                     : (elements + segments_ - 1) / segments_;
    return static_cast<std::size_t>(slotElements(plan_.chunking, like.chunk, longest)) *
           elementBytes_;
}

std::size_t Extents::bufferBytes(Buffer buffer, int blocks) const {
    const bool isInput = buffer == Buffer::kInput;
    const auto& offsets = isInput ? inputOffsets_ : outputOffsets_;
    if (blocks == 0) return 0;
    if (blocks == 1) {
        return elementsOf(operand_.meaning({plan_.me, buffer, 0})) * elementBytes_;
    }
    if (offsets.empty())
        return call_.counts.uniform * static_cast<std::size_t>(blocks) * elementBytes_;
    const int last = blocks - 1;
    const Location end{plan_.me, buffer, last * operand_.chunksPerBlock};
    return (offsets[last] + elementsOf(operand_.meaning(end))) * elementBytes_;
}

std::size_t Extents::inputBytes() const {
    return bufferBytes(Buffer::kInput, operand_.inputBlocks(plan_.me));
}

std::size_t Extents::outputBytes() const {
    return bufferBytes(Buffer::kOutput, operand_.outputBlocks(plan_.me));
}

}  // namespace isthmus
