#include "comm/transport/byte_ring.hpp"

#include <algorithm>
#include <cstring>

namespace isthmus {

namespace {

/// The other side is told after this many bytes, so that both copy at the same time.
constexpr std::uint64_t kStepBytes = 64 * 1024;
constexpr std::uint64_t kMask = kRingBytes - 1;
static_assert((kRingBytes & kMask) == 0);

/// How much of `bytes` can be moved in one memcpy from position `at`.
std::uint64_t stepAt(std::uint64_t at, std::uint64_t bytes) {
    return std::min({bytes, kRingBytes - (at & kMask), kStepBytes});
}

}  // namespace

RingWriter::RingWriter(std::byte* memory)
    : positions_(reinterpret_cast<RingPositions*>(memory)),
      bytes_(memory + sizeof(RingPositions)) {}

bool RingWriter::hasRoom() const {
    return positions_->tail.load(std::memory_order_acquire) + kRingBytes != head_;
}

Moved RingWriter::writeSome(std::span<const iovec> pieces) {
    Moved moved;
    for (const iovec& piece : pieces) {
        std::uint64_t done = 0;
        while (done < piece.iov_len) {
            if (head_ - tail_ == kRingBytes) {
                tail_ = positions_->tail.load(std::memory_order_acquire);
                if (head_ - tail_ == kRingBytes) return moved;
                if (head_ - tail_ > kRingBytes) {
                    moved.failure = Status::mismatch("ring with a wrong read position");
                    return moved;
                }
            }
            const std::uint64_t step =
                stepAt(head_, std::min(piece.iov_len - done, kRingBytes - (head_ - tail_)));
            std::memcpy(bytes_ + (head_ & kMask),
                        static_cast<const std::byte*>(piece.iov_base) + done, step);
            head_ += step;
            positions_->head.store(head_, std::memory_order_release);  // with the reader's acquire
            done += step;
            moved.bytes += step;
        }
    }
    return moved;
}

RingReader::RingReader(std::byte* memory)
    : positions_(reinterpret_cast<RingPositions*>(memory)),
      bytes_(memory + sizeof(RingPositions)) {}

bool RingReader::hasBytes() const {
    return positions_->head.load(std::memory_order_acquire) != tail_;
}

Moved RingReader::readSome(std::span<const iovec> pieces) {
    Moved moved;
    for (const iovec& piece : pieces) {
        std::uint64_t done = 0;
        while (done < piece.iov_len) {
            if (head_ == tail_) {
                head_ = positions_->head.load(std::memory_order_acquire);
                if (head_ == tail_) return moved;
                if (head_ - tail_ > kRingBytes) {
                    moved.failure = Status::mismatch("ring with a wrong write position");
                    return moved;
                }
            }
            const std::uint64_t step = stepAt(tail_, std::min(piece.iov_len - done, head_ - tail_));
            std::memcpy(static_cast<std::byte*>(piece.iov_base) + done, bytes_ + (tail_ & kMask),
                        step);
            tail_ += step;
            positions_->tail.store(tail_, std::memory_order_release);  // with the writer's acquire
            done += step;
            moved.bytes += step;
        }
    }
    return moved;
}

}  // namespace isthmus
