#include <array>

#include "comm/base/log.hpp"
#include "comm/transport/ofi/ofi_device_impl.hpp"

namespace isthmus {

namespace {

/// More than all operations that there are.
constexpr int kMostRounds = 128;
constexpr std::size_t kEntries = 32;

/// What providers say when the peer refuses an access, and goes on.
bool isRefusal(int cause) {
    return cause == FI_EACCES || cause == FI_EINVAL || cause == FI_EPERM || cause == FI_ENOKEY ||
           cause == FI_EKEYREJECTED || cause == FI_EFAULT;
}

}  // namespace

int OfiDevice::progress(RmaListener& listener) {
    const bool mayEnd = isUnsettled_ && beginEnds();
    int count = takeCompletions(listener);
    if (!unposted_.empty()) count += postReceives();
    if (isUnsettled_) {
        for (auto& [id, peer] : peers_) {
            if (peer.failure.ok()) count += startWaiting(peer);
        }
    }
    const std::vector<RmaPeer> ends = mayEnd ? finishEnds() : std::vector<RmaPeer>();
    count += tell(listener);
    for (const RmaPeer id : ends) listener.disconnected(id);
    if (isUnsettled_) isUnsettled_ = isUnsettled();
    return count + static_cast<int>(ends.size());
}

int OfiDevice::takeCompletions(RmaListener& listener) {
    std::array<fi_cq_msg_entry, kEntries> entries;
    int count = 0;
    for (int round = 0; round < kMostRounds; ++round) {
        const long got = ::fi_cq_read(&fabric_->completions(), entries.data(), entries.size());
        if (got == -FI_EAGAIN) break;
        if (got == -FI_EAVAIL) {
            takeError();
        } else if (got < 0) {
            failAll(Status::resource("ofi: fi_cq_read: " + fabric_->library().causeOf(got)));
            break;
        }
        for (long at = 0; at < got; ++at) {
            completed(*static_cast<OfiOperation*>(entries[at].op_context), entries[at].len,
                      listener);
        }
        count += static_cast<int>(got > 0 ? got : 1);
        // Each look costs as much as a message; who ends needs to see all that there is.
        if (got >= 0 && got < static_cast<long>(kEntries) && !isUnsettled_) break;
    }
    return count;
}

void OfiDevice::takeError() {
    fi_cq_err_entry entry{};
    if (::fi_cq_readerr(&fabric_->completions(), &entry, 0) <= 0) return;
    if (entry.op_context == nullptr) {  // of the provider's own doing
        log(LogLevel::kWarning,
            "ofi: " + fabric_->provider() + " reports " + fabric_->library().causeOf(entry.err));
        return;
    }
    failed(*static_cast<OfiOperation*>(entry.op_context), entry.err);
}

void OfiDevice::completed(OfiOperation& operation, std::size_t bytes, RmaListener& listener) {
    if (operation.kind == OfiOperation::Kind::kReceive) {
        if (bytes > 0) listener.arrived({operation.local, bytes});
        return postReceive(operation);
    }
    const auto found = peers_.find(operation.peer);
    if (found != peers_.end()) {
        --found->second.inFlight;
        if (operation.kind == OfiOperation::Kind::kPut &&
            fabric_->visibility() == OfiVisibility::kConfirmed) {
            return confirm(found->second, operation);
        }
    }
    ended(operation, {});
}

/// The put has left; a read that comes back from behind it proves that it is visible.
void OfiDevice::confirm(OfiPeer& peer, OfiOperation& operation) {
    operation.kind = OfiOperation::Kind::kConfirm;
    if (peer.isRemoved) return ended(operation, Status::aborted("disconnected"));
    if (!peer.failure.ok()) return ended(operation, peer.failure);
    if (!submit(peer, operation)) ended(operation, peer.failure);
}

void OfiDevice::failed(OfiOperation& operation, int cause) {
    if (operation.kind == OfiOperation::Kind::kReceive) {  // too long for us, or of a lost peer
        if (cause != FI_ECANCELED) postReceive(operation);
        return;
    }
    const std::string text = fabric_->library().causeOf(cause);
    const bool isTransfer = operation.kind != OfiOperation::Kind::kSend;
    Status outcome = isTransfer && isRefusal(cause)
                         ? Status::mismatch("the peer refuses the access: " + text)
                         : Status::peerLost(text);
    if (const auto found = peers_.find(operation.peer); found != peers_.end()) {
        --found->second.inFlight;
        if (found->second.isRemoved) {
            outcome = Status::aborted("disconnected");
        } else if (outcome.code() == Status::Code::kPeerLost) {
            fail(found->second, outcome);
        }
    }
    ended(operation, outcome);
}

void OfiDevice::ended(OfiOperation& operation, const Status& outcome) {
    const auto found = peers_.find(operation.peer);
    switch (operation.kind) {
    case OfiOperation::Kind::kSend:
        return sends_.giveBack(operation);
    case OfiOperation::Kind::kFlush:
        if (found != peers_.end()) found->second.isFlushed = true;
        break;
    default:
        if (found != peers_.end()) done_.push_back({operation.userContext, outcome});
        break;
    }
    transfers_.giveBack(operation);
}

void OfiDevice::fail(OfiPeer& peer, const Status& why) {
    if (!peer.failure.ok()) return;  // the first cause wins
    peer.failure = why;
    isUnsettled_ = true;
    dropWaiting(peer, why);
}

void OfiDevice::failAll(const Status& why) {
    for (auto& [id, peer] : peers_) fail(peer, why);
}

void OfiDevice::dropWaiting(OfiPeer& peer, const Status& why) {
    for (OfiOperation* const each : std::exchange(peer.waiting, {})) ended(*each, why);
}

int OfiDevice::tell(RmaListener& listener) {
    const auto done = std::exchange(done_, {});
    for (const Done& each : done) listener.completed(each.context, each.outcome);
    int count = static_cast<int>(done.size());
    if (!isUnsettled_) return count;
    for (auto& [id, peer] : peers_) {
        if (peer.failure.ok() || peer.isFailureTold || peer.ending.has_value()) continue;
        peer.isFailureTold = true;
        listener.failed(id, peer.failure);
        ++count;
    }
    return count;
}

bool OfiDevice::arm() {
    if (!done_.empty()) return false;
    for (const auto& [id, peer] : peers_) {
        if (!peer.failure.ok() && !peer.isFailureTold && !peer.ending.has_value()) return false;
    }
    if (eventDescriptor() < 0) return true;
    fid* const waited = &fabric_->completions().fid;
    return ::fi_trywait(&fabric_->fabric(), const_cast<fid**>(&waited), 1) == FI_SUCCESS;
}

Time OfiDevice::nextEvent() const {
    if (!isUnsettled_ && unposted_.empty()) return Time::max();
    return SteadyClock().now() + std::chrono::milliseconds(1);
}

}  // namespace isthmus
