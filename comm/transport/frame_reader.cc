#include "comm/transport/frame_reader.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus {

namespace {
constexpr std::size_t kMostPieces = 64;
}

Moved FrameReader::read(InStream& stream, std::size_t budgetBytes) {
    if (stage_ == nullptr) stage_ = std::make_unique_for_overwrite<std::byte[]>(kStageBytes);
    Moved total;
    while (total.bytes < budgetBytes) {
        const Moved moved = readOnce(stream);
        total.bytes += moved.bytes;
        total.isEnd = moved.isEnd;
        total.failure = moved.failure.ok() ? digest() : moved.failure;
        if (moved.bytes == 0 || !total.failure.ok()) break;
    }
    return total;
}

Moved FrameReader::readOnce(InStream& stream) {
    pieces_.clear();
    std::uint64_t direct = 0;
    if (isInFrame_ && !isDiscarding_) {
        for (std::size_t at = targetAt_; at < target_.size() && pieces_.size() < kMostPieces;
             ++at) {
            pieces_.push_back(target_[at]);
            direct += target_[at].iov_len;
        }
    }
    if (direct == left_ || isDiscarding_) {
        pieces_.push_back({stage_.get() + stageEnd_, kStageBytes - stageEnd_});
    }
    Moved moved = stream.readSome(pieces_);
    const std::size_t intoTarget = std::min<std::uint64_t>(moved.bytes, direct);
    if (intoTarget > 0) {
        advanceTarget(intoTarget);
        left_ -= intoTarget;
    }
    stageEnd_ += moved.bytes - intoTarget;
    return moved;
}

Status FrameReader::digest() {
    while (true) {
        if (isInFrame_) {
            takeStaged();
            if (left_ > 0) break;
            isInFrame_ = false;
            isDiscarding_ = false;
            ISTHMUS_TRY(sink_.end(header_));
        } else {
            if (stageEnd_ - stageBegin_ < kFrameHeaderBytes) break;
            ISTHMUS_TRY(startFrame());
        }
    }
    if (stageBegin_ > 0) {
        std::memmove(stage_.get(), stage_.get() + stageBegin_, stageEnd_ - stageBegin_);
        stageEnd_ -= stageBegin_;
        stageBegin_ = 0;
    }
    return {};
}

Status FrameReader::startFrame() {
    const auto header = decodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes>(
        stage_.get() + stageBegin_, kFrameHeaderBytes));
    if (!header.ok()) return header.status();
    stageBegin_ += kFrameHeaderBytes;
    header_ = *header;
    left_ = header_.payloadBytes;
    target_.clear();
    targetAt_ = 0;
    isInFrame_ = true;
    isDiscarding_ = false;
    ISTHMUS_TRY(sink_.begin(header_, target_));
    isDiscarding_ = isDiscarding_ || target_.empty();
    return {};
}

void FrameReader::takeStaged() {
    std::size_t take = std::min<std::uint64_t>(left_, stageEnd_ - stageBegin_);
    left_ -= take;
    if (isDiscarding_) {
        stageBegin_ += take;
        return;
    }
    while (take > 0) {
        const std::size_t bytes = std::min(take, target_[targetAt_].iov_len);
        std::memcpy(target_[targetAt_].iov_base, stage_.get() + stageBegin_, bytes);
        advanceTarget(bytes);
        stageBegin_ += bytes;
        take -= bytes;
    }
}

void FrameReader::advanceTarget(std::size_t bytes) {
    while (bytes > 0) {
        iovec& piece = target_[targetAt_];
        const std::size_t step = std::min(bytes, piece.iov_len);
        piece.iov_base = static_cast<std::byte*>(piece.iov_base) + step;
        piece.iov_len -= step;
        bytes -= step;
        if (piece.iov_len == 0) ++targetAt_;
    }
}

void FrameReader::discard() {
    if (!isInFrame_) return;
    isDiscarding_ = true;
    target_.clear();
    targetAt_ = 0;
}

}  // namespace isthmus
