#include "comm/base/assert.hpp"
#include "comm/transport/frame_endpoint.hpp"

namespace isthmus {

namespace {

/// Messages up to here are copied behind one another and leave in one write; a copy of this length
/// takes less than the system call that it saves (about 0.3 us).
constexpr std::uint32_t kCopiedBytes = 4 * 1024;
/// Enough small frames for one write: more only delays the first of them.
constexpr std::size_t kBatchBytes = 64 * 1024;
/// One call of progress writes about this much to one peer, so that no peer starves the others.
constexpr std::size_t kWriteBudgetBytes = 1024 * 1024;

FrameHeader headerOf(FrameKind kind, const Operation& operation) {
    FrameHeader header;
    header.kind = kind;
    header.tag = operation.tag;
    header.fingerprint = operation.fingerprint;
    header.messageBytes = totalBytes(operation);
    return header;
}

}  // namespace

void FrameEndpoint::queueFrame(FrameHeader header, std::span<const std::byte> payload) {
    if (isGone() || saidGoodbye_) return;
    connect();
    header.payloadBytes = static_cast<std::uint32_t>(payload.size());
    header.creditBytes = receiveCredit_.tell();
    const std::size_t start = urgent_.size();
    urgent_.resize(start + kFrameHeaderBytes);
    encode(header,
           std::span<std::byte, kFrameHeaderBytes>(urgent_.data() + start, kFrameHeaderBytes));
    urgent_.insert(urgent_.end(), payload.begin(), payload.end());
    carrier_.stirred();
}

void FrameEndpoint::queueAnswer(FrameKind kind, const Operation& operation) {
    queueFrame(headerOf(kind, operation));
}

void FrameEndpoint::tellCredit() {
    if (!receiveCredit_.isWorthTelling()) return;
    FrameHeader header;
    header.kind = FrameKind::kCredit;
    queueFrame(header);
}

void FrameEndpoint::sendControl(std::span<const std::byte> message) {
    ISTHMUS_ASSERT(message.size() <= kLongestControlBytes);
    FrameHeader header;
    header.kind = FrameKind::kControl;
    queueFrame(header, message);
}

void FrameEndpoint::sayGoodbye() {
    FrameHeader header;
    header.kind = FrameKind::kGoodbye;
    queueFrame(header);
    saidGoodbye_ = true;
}

void FrameEndpoint::postSend(Operation& operation) {
    operation.moved = 0;
    if (isGone()) return finish(operation, failure_);
    connect();
    const std::uint64_t bytes = totalBytes(operation);
    if (const auto grant = grants_.find(operation.tag); grant != grants_.end()) {
        const Grant granted = std::move(grant->second);
        grants_.erase(grant);
        if (granted.bytes == bytes) return startGranted(operation, granted.invitation);
        queueAnswer(FrameKind::kReceiveRefused, operation);
        return mismatch(operation, granted.bytes);
    }
    if (bytes <= limits_.eagerBytes && sendCredit_.take(eagerCost(bytes))) {
        return makeReady(operation, true);
    }
    queueAnswer(FrameKind::kRequest, operation);
    waiting_.insert(operation);
}

void FrameEndpoint::makeReady(Operation& operation, bool isSmall) {
    Ready& ready = ready_[std::min<int>(operation.priority, kPriorities - 1)];
    (isSmall ? ready.small : ready.large).push(operation);
    ++readyOperations_;
    carrier_.stirred();
}

/// Moves frames to the writer in the order in which they matter, as long as it copies them.
void FrameEndpoint::fill() {
    while (!writer_.isStreaming() && writer_.bufferedBytes() < kBatchBytes) {
        if (!urgent_.empty()) {
            writer_.append(urgent_);
            urgent_.clear();
            continue;
        }
        if (saidGoodbye_ || readyOperations_ == 0) return;  // nothing may follow a goodbye
        bool found = false;
        for (int priority = 0; priority < kPriorities && !found; ++priority) {
            found = fillOne(ready_[priority]);
        }
        if (!found) return;
    }
}

/// Whole small messages go before the next piece of a large one of the same priority.
bool FrameEndpoint::fillOne(Ready& ready) {
    const bool isSmall = !ready.small.isEmpty();
    Operation* const operation = isSmall ? ready.small.pop() : ready.large.pop();
    if (operation == nullptr) return false;
    --readyOperations_;
    FrameHeader header = headerOf(isSmall ? FrameKind::kEager : FrameKind::kData, *operation);
    header.offset = operation->moved;
    header.payloadBytes = static_cast<std::uint32_t>(
        isSmall ? header.messageBytes
                : std::min<std::uint64_t>(header.messageBytes - header.offset, limits_.pieceBytes));
    header.creditBytes = receiveCredit_.tell();
    const bool copies = header.payloadBytes <= kCopiedBytes;
    writer_.append(header, *operation, copies);
    operation->moved += header.payloadBytes;
    counters_.sentPayload += header.payloadBytes;
    if (copies) pieceWritten(*operation);
    return true;
}

void FrameEndpoint::pieceWritten(Operation& operation) {
    if (operation.moved == totalBytes(operation)) return finish(operation, {});
    ready_[std::min<int>(operation.priority, kPriorities - 1)].large.pushFront(operation);
    ++readyOperations_;
}

Moved FrameEndpoint::write(OutStream& stream) {
    Moved total;
    while (!isGone() && total.bytes < kWriteBudgetBytes) {
        fill();
        if (writer_.isEmpty()) break;
        const Moved moved = writer_.flush(stream);
        total.bytes += moved.bytes;
        counters_.sentTotal += moved.bytes;
        if (Operation* const operation = writer_.finished()) pieceWritten(*operation);
        if (!moved.failure.ok()) {
            total.failure = moved.failure;
            break;
        }
        if (!writer_.isEmpty() && moved.bytes == 0) break;
    }
    return total;
}

}  // namespace isthmus
