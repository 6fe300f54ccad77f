#include "comm/transport/frame_reader.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus {

namespace {
constexpr std::size_t kMostPieces = 64;
}

Moved FrameReader::read(InStream& stream, std::size_t budgetBytes) {
    makeStage();
    Moved total;
    while (total.bytes < budgetBytes) {
        const Moved moved = readOnce(stream);
        total.bytes += moved.bytes;
        total.isEnd = moved.isEnd;
        total.failure = moved.failure.ok() ? digestStage() : moved.failure;
        if (moved.bytes == 0 || !total.failure.ok()) break;
    }
    return total;
}

Status FrameReader::take(std::span<const std::byte> bytes) {
    if (staged_ > 0) {  // the start of a header
        const std::size_t rest = std::min(kFrameHeaderBytes - staged_, bytes.size());
        std::copy_n(bytes.begin(), rest, stage_.get() + staged_);
        staged_ += rest;
        bytes = bytes.subspan(rest);
        if (staged_ < kFrameHeaderBytes) return {};
        ISTHMUS_TRY(digestStage());
    }
    undigested_ = bytes;
    ISTHMUS_TRY(digest());
    if (undigested_.empty()) return {};
    makeStage();
    std::copy(undigested_.begin(), undigested_.end(), stage_.get());
    staged_ = undigested_.size();
    return {};
}

void FrameReader::makeStage() {
    if (stage_ == nullptr) stage_ = std::make_unique_for_overwrite<std::byte[]>(kStageBytes);
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
        pieces_.push_back({stage_.get() + staged_, kStageBytes - staged_});
    }
    Moved moved = stream.readSome(pieces_);
    const std::size_t intoTarget = std::min<std::uint64_t>(moved.bytes, direct);
    if (intoTarget > 0) {
        advanceTarget(intoTarget);
        left_ -= intoTarget;
    }
    staged_ += moved.bytes - intoTarget;
    return moved;
}

Status FrameReader::digestStage() {
    undigested_ = {stage_.get(), staged_};
    ISTHMUS_TRY(digest());
    if (undigested_.size() < staged_) {
        std::memmove(stage_.get(), undigested_.data(), undigested_.size());
        staged_ = undigested_.size();
    }
    return {};
}

/// Until what is left is no whole header.
Status FrameReader::digest() {
    while (true) {
        if (isInFrame_) {
            takePayload();
            if (left_ > 0) return {};
            isInFrame_ = false;
            isDiscarding_ = false;
            ISTHMUS_TRY(sink_.end(header_));
        } else {
            if (undigested_.size() < kFrameHeaderBytes) return {};
            ISTHMUS_TRY(startFrame());
        }
    }
}

Status FrameReader::startFrame() {
    const auto header = decodeFrameHeader(undigested_.first<kFrameHeaderBytes>());
    if (!header.ok()) return header.status();
    undigested_ = undigested_.subspan(kFrameHeaderBytes);
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

void FrameReader::takePayload() {
    const std::size_t bytes = std::min<std::uint64_t>(left_, undigested_.size());
    std::span<const std::byte> taken = undigested_.first(bytes);
    undigested_ = undigested_.subspan(bytes);
    left_ -= bytes;
    while (!isDiscarding_ && !taken.empty()) {
        const std::size_t step = std::min(taken.size(), target_[targetAt_].iov_len);
        std::memcpy(target_[targetAt_].iov_base, taken.data(), step);
        advanceTarget(step);
        taken = taken.subspan(step);
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
