#include <cstring>

#include "comm/transport/frame_endpoint.hpp"

namespace isthmus {

namespace {

/// One call of progress reads about this much of one peer, so that no peer starves the others.
constexpr std::size_t kReadBudgetBytes = 1024 * 1024;
/// Announcements without a partner are kept; more of them than this is no honest peer.
constexpr std::size_t kMostAnnouncements = 256 * 1024;

Status tooMany(const char* what) {
    return Status::mismatch(std::string("more than ") + std::to_string(kMostAnnouncements) + " " +
                            what + " without a partner");
}

void copyIn(const std::vector<std::byte>& payload, const Operation& to) {
    std::size_t at = 0;
    for (const MemoryPiece& piece : to.pieces) {
        if (piece.bytes > 0) std::memcpy(piece.address, payload.data() + at, piece.bytes);
        at += piece.bytes;
    }
}

}  // namespace

void FrameEndpoint::postRecv(Operation& operation) {
    operation.moved = 0;
    operation.isGranted = false;
    operation.isOpen = false;
    const auto found = unexpected_.find(operation.tag);
    if (found != unexpected_.end() && found->second.isWhole) {
        claim(operation, found->second);
        unexpected_.erase(found);
        return;
    }
    if (isGone()) return finish(operation, failure_);
    connect();
    const std::uint64_t bytes = totalBytes(operation);
    const bool isRequested =
        found != unexpected_.end() && found->second.header.kind == FrameKind::kRequest;
    if (isRequested) {
        const std::uint64_t theirs = found->second.header.messageBytes;
        unexpected_.erase(found);
        if (theirs != bytes) {
            queueAnswer(FrameKind::kSendRefused, operation);
            return mismatch(operation, theirs);
        }
    }
    receives_.insert(operation);
    if (isRequested || bytes > limits_.eagerBytes) grant(operation);
}

void FrameEndpoint::grant(Operation& operation) {
    operation.isGranted = true;
    if (mover_ != nullptr && invite(operation)) return;
    queueAnswer(FrameKind::kGrant, operation);
}

bool FrameEndpoint::withdraw(Operation& receive) {
    // unexpected_: its payload is arriving.
    if (receive.isGranted || inbound_ == &receive || unexpected_.contains(receive.tag) ||
        receives_.find(receive.tag) != &receive) {
        return false;
    }
    receives_.take(receive.tag);
    return true;
}

/// Gives a message that came before its receive to `operation`.
void FrameEndpoint::claim(Operation& operation, Unexpected& message) {
    receiveCredit_.consumed(eagerCost(message.header.payloadBytes));
    tellCredit();
    if (message.header.messageBytes != totalBytes(operation)) {
        queueAnswer(FrameKind::kSendRefused, operation);
        return mismatch(operation, message.header.messageBytes);
    }
    copyIn(message.payload, operation);
    counters_.receivedPayload += message.header.payloadBytes;
    operation.moved = message.header.messageBytes;
    finish(operation, {});
}

Moved FrameEndpoint::read(InStream& stream) {
    if (isGone()) return {};
    Moved moved = reader_.read(stream, kReadBudgetBytes);
    counters_.receivedTotal += moved.bytes;
    tellCredit();
    return moved;
}

Status FrameEndpoint::take(std::span<const std::byte> bytes) {
    if (isGone()) return failure_;
    counters_.receivedTotal += bytes.size();
    ISTHMUS_TRY(reader_.take(bytes));
    tellCredit();
    return {};
}

void FrameEndpoint::announce(const FrameHeader& header) {
    listener_.announced(*this, header.tag, header.fingerprint, header.messageBytes);
}

Status FrameEndpoint::begin(const FrameHeader& header, std::vector<iovec>& target) {
    if (isGone()) return failure_;
    if (!sendCredit_.giveBack(header.creditBytes)) {
        return Status::mismatch("more credit returned than was used");
    }
    switch (header.kind) {
    case FrameKind::kEager:
        return beginEager(header, target);
    case FrameKind::kData:
        return beginData(header, target);
    case FrameKind::kRequest:
        return takeRequest(header);
    case FrameKind::kGrant:
        return takeGrant(header, {});
    case FrameKind::kSendRefused:
        grants_.erase(header.tag);
        takeRefusal(header, waiting_);
        return {};
    case FrameKind::kReceiveRefused:
        takeRefusal(header, receives_);
        return {};
    case FrameKind::kInvite:
    case FrameKind::kControl:
        smallMessage_.resize(header.payloadBytes);
        if (!smallMessage_.empty()) target.push_back({smallMessage_.data(), smallMessage_.size()});
        return {};
    case FrameKind::kWritten:
        return takeWritten(header);
    case FrameKind::kRecall:
        takeRecall(header);
        return {};
    case FrameKind::kRecalled:
        return takeRecalled(header);
    case FrameKind::kGoodbye:
        gone(Status::peerLost(describe() + " left"), State::kLeft);
        return failure_;
    case FrameKind::kCredit:
        return {};
    }
    return {};
}

Status FrameEndpoint::beginEager(const FrameHeader& header, std::vector<iovec>& target) {
    if (!receiveCredit_.arrived(eagerCost(header.payloadBytes))) {
        return Status::mismatch("more sent than its window holds");
    }
    announce(header);
    if (isCancelled(header.tag.communicator)) return {};
    if (Operation* const operation = receives_.find(header.tag)) {
        if (header.messageBytes == totalBytes(*operation)) {
            appendPieces(*operation, 0, header.payloadBytes, target, operation->pieces.size());
            inbound_ = operation;
            return {};
        }
        receives_.take(header.tag);
        queueAnswer(FrameKind::kSendRefused, *operation);
        mismatch(*operation, header.messageBytes);
        return {};
    }
    const auto [entry, isNew] = unexpected_.try_emplace(header.tag);
    if (!isNew) return Status::mismatch("two messages of one tag");
    entry->second.header = header;
    entry->second.payload.resize(header.payloadBytes);
    if (header.payloadBytes > 0) {
        target.push_back({entry->second.payload.data(), header.payloadBytes});
    }
    return {};
}

Status FrameEndpoint::beginData(const FrameHeader& header, std::vector<iovec>& target) {
    if (header.offset == 0) announce(header);
    if (isCancelled(header.tag.communicator)) return {};
    Operation* const operation = receives_.find(header.tag);
    if (operation == nullptr) return Status::mismatch("data that nobody asked for");
    if (header.messageBytes != totalBytes(*operation) || header.offset != operation->moved) {
        return Status::mismatch("data that does not fit its receive");
    }
    appendPieces(*operation, header.offset, header.payloadBytes, target, operation->pieces.size());
    inbound_ = operation;
    return {};
}

Status FrameEndpoint::end(const FrameHeader& header) {
    // Eager payloads count when a receive gets them: a peer that runs ahead does not disturb who
    // counts the bytes of one call.
    if (header.kind == FrameKind::kData) counters_.receivedPayload += header.payloadBytes;
    if (header.kind == FrameKind::kControl) {
        listener_.control(*this, smallMessage_);
        return {};
    }
    if (header.kind == FrameKind::kInvite) return takeGrant(header, smallMessage_);
    if (header.kind == FrameKind::kEager) return endEager(header);
    Operation* const operation = std::exchange(inbound_, nullptr);
    if (header.kind == FrameKind::kData && operation != nullptr) {
        operation->moved += header.payloadBytes;
        if (operation->moved == header.messageBytes) {
            receives_.take(header.tag);
            finish(*operation, {});
        }
    }
    return {};
}

Status FrameEndpoint::endEager(const FrameHeader& header) {
    if (Operation* const operation = std::exchange(inbound_, nullptr)) {
        receives_.take(header.tag);
        counters_.receivedPayload += header.payloadBytes;
        operation->moved = header.messageBytes;
        finish(*operation, {});
    } else if (const auto found = unexpected_.find(header.tag);
               found != unexpected_.end() && found->second.header.kind == FrameKind::kEager) {
        found->second.isWhole = true;
        Operation* const late = receives_.take(header.tag);  // posted while the payload arrived
        if (late == nullptr) return {};
        claim(*late, found->second);
        unexpected_.erase(found);
        return {};
    }
    receiveCredit_.consumed(eagerCost(header.payloadBytes));
    return {};
}

Status FrameEndpoint::takeRequest(const FrameHeader& header) {
    announce(header);
    if (isCancelled(header.tag.communicator)) return {};
    if (Operation* const operation = receives_.find(header.tag)) {
        const std::uint64_t bytes = totalBytes(*operation);
        if (bytes != header.messageBytes) {
            receives_.take(header.tag);
            queueAnswer(FrameKind::kSendRefused, *operation);
            mismatch(*operation, header.messageBytes);
        } else if (bytes <= limits_.eagerBytes) {
            grant(*operation);
        }  // else the grant left when the receive was posted
        return {};
    }
    if (unexpected_.size() >= kMostAnnouncements) return tooMany("messages");
    const auto [entry, isNew] = unexpected_.try_emplace(header.tag);
    if (!isNew) return Status::mismatch("two messages of one tag");
    entry->second.header = header;
    return {};
}

Status FrameEndpoint::takeGrant(const FrameHeader& header, const Bytes& invitation) {
    announce(header);
    if (isCancelled(header.tag.communicator)) return {};
    if (Operation* const operation = waiting_.take(header.tag)) {
        if (header.messageBytes == totalBytes(*operation)) {
            startGranted(*operation, invitation);
        } else {
            queueAnswer(FrameKind::kReceiveRefused, *operation);
            mismatch(*operation, header.messageBytes);
        }
        return {};
    }
    if (grants_.size() >= kMostAnnouncements) return tooMany("grants");
    grants_[header.tag] = {header.messageBytes, invitation};
    return {};
}

void FrameEndpoint::takeRefusal(const FrameHeader& header, OperationTable& from) {
    if (Operation* const operation = from.take(header.tag)) {
        mismatch(*operation, header.messageBytes);
    }
}

}  // namespace isthmus
