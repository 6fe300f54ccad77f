#include "comm/base/assert.hpp"
#include "comm/transport/frame_endpoint.hpp"

namespace isthmus {

namespace {

FrameHeader headerOf(FrameKind kind, const MessageTag& tag, std::uint64_t messageBytes) {
    FrameHeader header;
    header.kind = kind;
    header.tag = tag;
    header.messageBytes = messageBytes;
    return header;
}

}  // namespace

/// The frame of a receive that the peer may write to itself. False: it may not.
bool FrameEndpoint::invite(Operation& operation) {
    const std::uint64_t bytes = totalBytes(operation);
    if (bytes <= limits_.eagerBytes) return false;
    const Bytes invitation = mover_->invite(operation);
    if (invitation.empty()) return false;
    ISTHMUS_ASSERT(invitation.size() <= kLongestInvitationBytes);
    operation.isOpen = true;
    FrameHeader header = headerOf(FrameKind::kInvite, operation.tag, bytes);
    header.fingerprint = operation.fingerprint;
    queueFrame(header, invitation);
    return true;
}

void FrameEndpoint::startGranted(Operation& operation, const Bytes& invitation) {
    if (mover_ == nullptr || invitation.empty() || !mover_->accept(operation, invitation)) {
        return makeReady(operation, false);
    }
    direct_.sends[operation.tag].operation = &operation;
    direct_.ready.push(operation);
}

std::uint64_t FrameEndpoint::moveDirectly() {
    std::uint64_t total = 0;
    while (Operation* const operation = direct_.ready.first()) {
        const std::uint64_t bytes = mover_->put(*operation);
        if (bytes == 0) break;
        total += bytes;
        operation->moved += bytes;
        direct_.sends[operation->tag].inFlight += bytes;
        counters_.sentPayload += bytes;
        counters_.sentTotal += bytes;
        if (operation->moved == totalBytes(*operation)) direct_.ready.remove(*operation);
    }
    return total;
}

void FrameEndpoint::written(Operation& operation, std::uint64_t bytes, const Status& outcome) {
    const auto found = direct_.sends.find(operation.tag);
    ISTHMUS_ASSERT(found != direct_.sends.end() && found->second.inFlight >= bytes);
    DirectSend& send = found->second;
    if (!outcome.ok()) fail(Status::peerLost(describe() + ": " + outcome.what()));
    send.inFlight -= bytes;
    if (send.outcome.has_value()) {
        if (send.inFlight == 0) endSend(operation.tag);
        return;
    }
    send.visible += bytes;
    FrameHeader header = headerOf(FrameKind::kWritten, operation.tag, totalBytes(operation));
    header.fingerprint = operation.fingerprint;
    header.offset = send.visible;
    queueFrame(header);
    if (send.visible == header.messageBytes) stopSend(send, {});
}

/// Takes nothing more of a send; it ends when nothing of it is in flight.
void FrameEndpoint::stopSend(DirectSend& send, const Status& outcome) {
    if (send.outcome.has_value()) return;
    send.outcome = outcome;
    direct_.ready.remove(*send.operation);
    if (send.inFlight == 0) endSend(send.operation->tag);
}

void FrameEndpoint::endSend(const MessageTag& tag) {
    const auto found = direct_.sends.find(tag);
    const DirectSend send = std::move(found->second);
    direct_.sends.erase(found);
    mover_->release(*send.operation);
    if (send.isRecalled) queueAnswer(FrameKind::kRecalled, *send.operation);
    finish(*send.operation, *send.outcome);
}

void FrameEndpoint::recall(Operation& operation, const Status& why) {
    direct_.recalled[operation.tag] = {&operation, why};
    queueAnswer(FrameKind::kRecall, operation);
}

void FrameEndpoint::stopDirect(const std::function<bool(const Operation&)>& claim,
                               const Status& why) {
    std::vector<DirectSend*> stopped;
    for (auto& [tag, send] : direct_.sends) {
        if (claim(*send.operation)) stopped.push_back(&send);
    }
    // Erasing one leaves the others where they are.
    for (DirectSend* const send : stopped) stopSend(*send, why);
    receives_.takeIf([&](const Operation& each) { return each.isOpen && claim(each); },
                     [&](Operation& each) {
                         if (inbound_ == &each) {
                             reader_.discard();
                             inbound_ = nullptr;
                         }
                         recall(each, why);
                     });
}

Status FrameEndpoint::takeWritten(const FrameHeader& header) {
    if (isCancelled(header.tag.communicator)) return {};
    Operation* const operation = receives_.find(header.tag);
    if (operation == nullptr || !operation->isOpen) {
        return Status::mismatch("a message written that nobody asked for");
    }
    if (header.messageBytes != totalBytes(*operation) || header.offset <= operation->moved) {
        return Status::mismatch("a message written that does not fit its receive");
    }
    if (operation->moved == 0) announce(header);
    if (isCancelled(header.tag.communicator)) return {};
    const std::uint64_t bytes = header.offset - operation->moved;
    counters_.receivedPayload += bytes;
    counters_.receivedTotal += bytes;
    operation->moved = header.offset;
    if (operation->moved < header.messageBytes) return {};
    receives_.take(header.tag);
    finish(*operation, {});
    return {};
}

/// The receiver has given up: what was sent is free as soon as nothing moves, as if it had arrived.
void FrameEndpoint::takeRecall(const FrameHeader& header) {
    grants_.erase(header.tag);
    const auto found = direct_.sends.find(header.tag);
    if (found == direct_.sends.end()) {
        return queueFrame(headerOf(FrameKind::kRecalled, header.tag, header.messageBytes));
    }
    found->second.isRecalled = true;
    stopSend(found->second, {});
}

Status FrameEndpoint::takeRecalled(const FrameHeader& header) {
    const auto found = direct_.recalled.find(header.tag);
    if (found == direct_.recalled.end()) return Status::mismatch("memory back that nobody wants");
    const RecalledReceive receive = std::move(found->second);
    direct_.recalled.erase(found);
    finish(*receive.operation, receive.why);
    return {};
}

void FrameEndpoint::released() {
    ISTHMUS_ASSERT(isGone());
    for (auto& [tag, send] : std::exchange(direct_.sends, {})) {
        mover_->release(*send.operation);
        finish(*send.operation, send.outcome.value_or(failure_));
    }
    for (const auto& [tag, receive] : std::exchange(direct_.recalled, {})) {
        finish(*receive.operation, receive.why);
    }
    if (!std::exchange(lossWaits_, false)) return;
    lossIsNews_ = true;
    carrier_.stirred();
}

}  // namespace isthmus
