#include "comm/transport/frame_endpoint.hpp"

#include "comm/base/assert.hpp"

namespace isthmus {

namespace {
/// Communicators are never named alike again, so old ones may be forgotten when nothing of theirs
/// can still be on its way.
constexpr std::size_t kCancelledKept = 4096;
}  // namespace

FrameEndpoint::FrameEndpoint(const ProcessId& peer, Carrier& carrier, TransportListener& listener,
                             const FlowLimits& limits, DirectMover* mover)
    : peer_(peer),
      carrier_(carrier),
      listener_(listener),
      mover_(mover),
      limits_(limits),
      sendCredit_(limits.windowBytes),
      reader_(*this),
      receiveCredit_(limits.windowBytes) {
    ISTHMUS_ASSERT(limits.eagerBytes <= kLongestEagerBytes);
    ISTHMUS_ASSERT(limits.pieceBytes > 0 && limits.pieceBytes <= kLongestPieceBytes);
}

void FrameEndpoint::connect() {
    if (state_ != State::kIdle) return;
    state_ = State::kConnecting;
    carrier_.connect();
}

void FrameEndpoint::opened() {
    if (!isGone()) state_ = State::kOpen;
}

void FrameEndpoint::finish(Operation& operation, const Status& status) {
    if (std::exchange(operation.isOpen, false)) mover_->close(operation);
    completed_.emplace_back(&operation, status);
    carrier_.stirred();
}

void FrameEndpoint::mismatch(Operation& operation, std::uint64_t theirs) {
    finish(operation, Status::mismatch("message of " + std::to_string(totalBytes(operation)) +
                                       " bytes here, of " + std::to_string(theirs) + " bytes at " +
                                       describe()));
}

int FrameEndpoint::complete() {
    if (!running_.empty()) return 0;  // from inside a completion
    running_.swap(completed_);
    int count = 0;
    for (const auto& [operation, status] : running_) {
        operation->done(*operation, status);
        ++count;
    }
    running_.clear();
    if (std::exchange(lossIsNews_, false)) {
        listener_.lost(*this, failure_);
        ++count;
    }
    return count;
}

template <typename Claim>
void FrameEndpoint::finishReady(const Claim& claim, const Status& why) {
    const auto finishIt = [&](Operation& each) {
        --readyOperations_;
        finish(each, why);
    };
    for (Ready& ready : ready_) {
        ready.small.takeIf(claim, finishIt);
        ready.large.takeIf(claim, finishIt);
    }
}

void FrameEndpoint::cancel(std::uint64_t communicator, const Status& why) {
    if (cancelled_.insert(communicator).second) cancelledInOrder_.push_back(communicator);
    if (cancelledInOrder_.size() > kCancelledKept) {
        cancelled_.erase(cancelledInOrder_.front());
        cancelledInOrder_.pop_front();
    }
    const auto isOurs = [&](const Operation& each) {
        return each.tag.communicator == communicator;
    };
    const auto finishIt = [&](Operation& each) { finish(each, why); };
    if (mover_ != nullptr) stopDirect(isOurs, why);
    if (Operation* const streaming = writer_.streaming(); streaming && isOurs(*streaming)) {
        writer_.detach();
        finishIt(*streaming);
    }
    finishReady(isOurs, why);
    waiting_.takeIf(isOurs, finishIt);
    std::erase_if(grants_,
                  [&](const auto& each) { return each.first.communicator == communicator; });

    if (inbound_ != nullptr && isOurs(*inbound_)) {
        reader_.discard();
        inbound_ = nullptr;
    }
    receives_.takeIf(isOurs, finishIt);
    std::erase_if(unexpected_, [&](const auto& each) {
        const Unexpected& message = each.second;
        if (message.header.tag.communicator != communicator) return false;
        if (message.header.kind == FrameKind::kEager) {
            if (message.isWhole) {
                receiveCredit_.consumed(eagerCost(message.header.payloadBytes));
            } else {
                reader_.discard();  // end() returns its credit
            }
        }
        return true;
    });
    tellCredit();
}

void FrameEndpoint::fail(const Status& why) {
    gone(why, State::kLost);
}

void FrameEndpoint::leave(const Status& why) {
    gone(why, State::kLeft);
}

void FrameEndpoint::shut(const Status& why) {
    if (isGone()) return;
    gone(why, State::kLost);
    lossIsNews_ = false;
    lossWaits_ = false;
}

void FrameEndpoint::gone(const Status& why, State state) {
    if (isGone()) return;
    state_ = state;
    failure_ = why;
    const auto all = [](const Operation&) { return true; };
    const auto finishIt = [&](Operation& each) { finish(each, why); };
    if (mover_ != nullptr) stopDirect(all, why);
    (isHolding() ? lossWaits_ : lossIsNews_) = true;
    carrier_.stirred();
    if (Operation* const streaming = writer_.streaming()) finishIt(*streaming);
    writer_.drop();
    urgent_.clear();
    finishReady(all, why);
    waiting_.takeIf(all, finishIt);
    grants_.clear();
    reader_.discard();
    inbound_ = nullptr;
    receives_.takeIf(all, finishIt);
    // What arrived whole before the end can still be claimed.
    std::erase_if(unexpected_, [](const auto& each) { return !each.second.isWhole; });
}

bool FrameEndpoint::isAnnounced(const MessageTag& tag) const {
    return unexpected_.contains(tag);
}

}  // namespace isthmus
