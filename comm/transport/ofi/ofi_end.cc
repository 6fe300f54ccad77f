#include <algorithm>

#include "comm/transport/ofi/ofi_device_impl.hpp"

namespace isthmus {

void OfiDevice::disconnect(RmaPeer id, Ending ending) {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return;
    if (found->second.ending != Ending::kNow) found->second.ending = ending;
    isUnsettled_ = true;
}

/// Before completions are taken: whoever is removed here has nothing to come afterwards. False:
/// nobody ends.
bool OfiDevice::beginEnds() {
    bool isAny = false;
    for (auto& [id, peer] : peers_) {
        if (!peer.ending.has_value()) continue;
        if (!peer.failure.ok()) peer.ending = Ending::kNow;
        if (peer.ending == Ending::kDelivered && peer.waiting.empty() && peer.inFlight == 0) {
            flush(id, peer);
        }
        if (peer.ending == Ending::kNow && !peer.isRemoved) {
            dropWaiting(peer, Status::aborted("disconnected"));
            remove(peer);
        }
        isAny = true;
    }
    return isAny;
}

/// What left this process may still be on its way; a read from behind it says that it is not.
/// Providers inside one node have put it into the peer's memory by then.
void OfiDevice::flush(RmaPeer id, OfiPeer& peer) {
    if (fabric_->isLocal() || !fabric_->isOrdered(FI_ORDER_RAS) || peer.isFlushed) {
        peer.ending = Ending::kNow;
        return;
    }
    if (peer.isFlushing) return;
    OfiOperation* const operation = transfers_.take();
    if (operation == nullptr) return;  // some other peer's; they end
    operation->kind = OfiOperation::Kind::kFlush;
    operation->peer = id;
    peer.isFlushing = true;
    if (!submit(peer, *operation)) transfers_.giveBack(*operation);
}

void OfiDevice::remove(OfiPeer& peer) {
    // shm looks at the removed peer's region when it comes to what that peer asked for before
    // (libfabric 1.17, smr_progress_cmd_rma). It writes nothing without a look at the key.
    if (!fabric_->isLocal()) {
        (void)::fi_av_remove(&fabric_->addresses(), &peer.address, 1, 0);
    }
    memory_.drop(peer.groundKey);
    peer.isRemoved = true;
}

/// The provider still holds operations of this peer and will not say what becomes of them.
void OfiDevice::orphan(RmaPeer id) {
    bool isHeld = false;
    for (OfiPool* const pool : {&sends_, &transfers_}) {
        for (OfiOperation& each : pool->all()) {
            if (!each.isBusy || each.peer != id) continue;
            if (pool == &transfers_ && each.kind != OfiOperation::Kind::kFlush) {
                done_.push_back({each.userContext, Status::aborted("disconnected")});
                isHeld = true;
            }
            each.peer = {};
        }
    }
    if (!isHeld || !fabric_->isLocal()) return;
    // Its answers come in the order of the questions, whoever is asked (libfabric 1.17, smr_ep).
    failAll(Status::peerLost(fabric_->provider() +
                             " holds a transfer of a peer that is gone, and all behind it"));
}

std::vector<RmaPeer> OfiDevice::finishEnds() {
    std::vector<RmaPeer> ends;
    for (const auto& [id, peer] : peers_) {
        if (peer.isRemoved) ends.push_back(id);
    }
    for (const RmaPeer id : ends) {
        orphan(id);
        peers_.erase(id);
    }
    return ends;
}

bool OfiDevice::isUnsettled() const {
    return std::any_of(peers_.begin(), peers_.end(), [](const auto& each) {
        const OfiPeer& peer = each.second;
        return !peer.waiting.empty() || peer.ending.has_value() ||
               (!peer.failure.ok() && !peer.isFailureTold);
    });
}

}  // namespace isthmus
