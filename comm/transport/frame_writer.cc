#include "comm/transport/frame_writer.hpp"

#include <algorithm>
#include <utility>

#include "comm/base/assert.hpp"
#include "comm/transport/operation_table.hpp"

namespace isthmus {

namespace {

/// Pieces per write: well below IOV_MAX (1024 on Linux, readv(2)).
constexpr std::size_t kMostPieces = 64;

void copyOut(const Operation& operation, std::uint64_t offset, std::uint64_t bytes,
             std::vector<std::byte>& to) {
    std::vector<iovec> pieces;
    appendPieces(operation, offset, bytes, pieces, operation.pieces.size());
    for (const iovec& piece : pieces) {
        const auto* const from = static_cast<const std::byte*>(piece.iov_base);
        to.insert(to.end(), from, from + piece.iov_len);
    }
}

}  // namespace

void FrameWriter::append(std::span<const std::byte> frames) {
    ISTHMUS_ASSERT(!isStreaming());
    buffer_.insert(buffer_.end(), frames.begin(), frames.end());
}

void FrameWriter::append(const FrameHeader& header, Operation& operation, bool copies) {
    ISTHMUS_ASSERT(!isStreaming());
    const std::size_t start = buffer_.size();
    buffer_.resize(start + kFrameHeaderBytes);
    encode(header,
           std::span<std::byte, kFrameHeaderBytes>(buffer_.data() + start, kFrameHeaderBytes));
    if (copies) {
        if (operation.pieces.size() == 1) {
            const std::byte* const from = operation.pieces[0].address + header.offset;
            buffer_.insert(buffer_.end(), from, from + header.payloadBytes);
        } else {
            copyOut(operation, header.offset, header.payloadBytes, buffer_);
        }
        return;
    }
    piece_ = &operation;
    pieceOffset_ = header.offset;
    pieceLeft_ = header.payloadBytes;
}

Moved FrameWriter::flush(OutStream& stream) {
    pieces_.clear();
    const std::size_t buffered = bufferedBytes();
    if (buffered > 0) pieces_.push_back({buffer_.data() + written_, buffered});
    if (piece_ != nullptr) {
        appendPieces(*piece_, pieceOffset_, pieceLeft_, pieces_, kMostPieces);
    }
    Moved moved = stream.writeSome(pieces_);
    const std::size_t fromBuffer = std::min(moved.bytes, buffered);
    written_ += fromBuffer;
    if (written_ == buffer_.size()) {
        buffer_.clear();
        written_ = 0;
    }
    if (piece_ != nullptr) {
        pieceOffset_ += moved.bytes - fromBuffer;
        pieceLeft_ -= moved.bytes - fromBuffer;
        if (pieceLeft_ == 0) finished_ = std::exchange(piece_, nullptr);
    }
    return moved;
}

Operation* FrameWriter::finished() {
    return std::exchange(finished_, nullptr);
}

void FrameWriter::detach() {
    if (piece_ == nullptr) return;
    const Operation& operation = *std::exchange(piece_, nullptr);
    copyOut(operation, pieceOffset_, pieceLeft_, buffer_);
    pieceLeft_ = 0;
}

void FrameWriter::drop() {
    buffer_.clear();
    written_ = 0;
    piece_ = nullptr;
    finished_ = nullptr;
}

}  // namespace isthmus
