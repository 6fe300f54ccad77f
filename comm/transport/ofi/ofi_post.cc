#include <cstring>

#include "comm/transport/ofi/ofi_device_impl.hpp"

namespace isthmus {

namespace {

/// Of the operations for messages, that one peer may hold.
constexpr std::size_t kMostOfOnePeer = 96;

}  // namespace

OfiPeer* OfiDevice::takerOf(RmaPeer id) {
    const auto found = peers_.find(id);
    return found != peers_.end() && found->second.takes() ? &found->second : nullptr;
}

RmaPost OfiDevice::post(RmaPeer id, std::span<const iovec> pieces) {
    OfiPeer* const peer = takerOf(id);
    if (peer == nullptr) return RmaPost::kGone;
    if (peer->waiting.size() >= kMostOfOnePeer) return RmaPost::kFull;
    OfiOperation* const operation = sends_.take();
    if (operation == nullptr) return RmaPost::kFull;
    operation->kind = OfiOperation::Kind::kSend;
    operation->peer = id;
    operation->bytes = 0;
    for (const iovec& piece : pieces) {
        std::memcpy(operation->local + operation->bytes, piece.iov_base, piece.iov_len);
        operation->bytes += piece.iov_len;
    }
    if (submit(*peer, *operation)) return RmaPost::kTaken;
    sends_.giveBack(*operation);
    return RmaPost::kGone;
}

RmaPost OfiDevice::move(RmaPeer id, const RmaTransfer& transfer, OfiOperation::Kind kind) {
    OfiPeer* const peer = takerOf(id);
    if (peer == nullptr) return RmaPost::kGone;
    const auto local = memory_.local(transfer.localRegion, transfer.local, transfer.bytes);
    const auto remote = memory_.remote(transfer.key, transfer.remote, transfer.bytes);
    if (!local.isRegistered || !remote.isRegistered) {
        done_.push_back({transfer.context,
                         Status::mismatch(std::string(local.isRegistered ? "the peer's" : "local") +
                                          " memory is not registered")});
        return RmaPost::kTaken;
    }
    OfiOperation* const operation = transfers_.take();
    if (operation == nullptr) return RmaPost::kFull;
    operation->kind = kind;
    operation->peer = id;
    operation->local = transfer.local;
    operation->bytes = transfer.bytes;
    operation->descriptor = local.descriptor;
    operation->remote = remote.address;
    operation->remoteKey = remote.key;
    operation->userContext = transfer.context;
    if (submit(*peer, *operation)) return RmaPost::kTaken;
    transfers_.giveBack(*operation);
    return RmaPost::kGone;
}

bool OfiDevice::submit(OfiPeer& peer, OfiOperation& operation) {
    if (peer.waiting.empty()) {
        const long result = start(peer, operation);
        if (result == 0) {
            started(peer, operation);
            return true;
        }
        if (result != -FI_EAGAIN) {
            fail(peer, Status::peerLost(fabric_->library().causeOf(result)));
            return false;
        }
    }
    peer.waiting.push_back(&operation);
    isUnsettled_ = true;
    return true;
}

void OfiDevice::started(OfiPeer& peer, OfiOperation& operation) {
    if (isInjected(operation)) return sends_.giveBack(operation);
    ++peer.inFlight;
}

int OfiDevice::startWaiting(OfiPeer& peer) {
    int count = 0;
    while (!peer.waiting.empty()) {
        const long result = start(peer, *peer.waiting.front());
        if (result == -FI_EAGAIN) break;
        if (result != 0) {
            fail(peer, Status::peerLost(fabric_->library().causeOf(result)));
            break;
        }
        OfiOperation& operation = *peer.waiting.front();
        peer.waiting.pop_front();
        started(peer, operation);
        ++count;
    }
    return count;
}

long OfiDevice::start(const OfiPeer& peer, OfiOperation& operation) {
    switch (operation.kind) {
    case OfiOperation::Kind::kSend:
        if (isInjected(operation)) {
            return ::fi_inject(&fabric_->endpoint(), operation.local, operation.bytes,
                               peer.address);
        }
        return ::fi_send(&fabric_->endpoint(), operation.local, operation.bytes,
                         operation.descriptor, peer.address, &operation.context);
    case OfiOperation::Kind::kPut:
        return write(peer, operation);
    case OfiOperation::Kind::kGet:
        return read(peer, operation);
    case OfiOperation::Kind::kConfirm:
    case OfiOperation::Kind::kFlush:
        return readGround(peer, operation);
    case OfiOperation::Kind::kReceive:
        break;
    }
    return -FI_EINVAL;
}

long OfiDevice::write(const OfiPeer& peer, OfiOperation& operation) {
    const iovec local{operation.local, operation.bytes};
    const fi_rma_iov remote{operation.remote, operation.bytes, operation.remoteKey};
    const fi_msg_rma message{&local, &operation.descriptor, 1, peer.address, &remote,
                             1,      &operation.context,    0};
    const bool isDelivered = fabric_->visibility() == OfiVisibility::kDelivered;
    return ::fi_writemsg(&fabric_->endpoint(), &message,
                         FI_COMPLETION | (isDelivered ? FI_DELIVERY_COMPLETE : 0));
}

long OfiDevice::read(const OfiPeer& peer, OfiOperation& operation) {
    return ::fi_read(&fabric_->endpoint(), operation.local, operation.bytes, operation.descriptor,
                     peer.address, operation.remote, operation.remoteKey, &operation.context);
}

long OfiDevice::readGround(const OfiPeer& peer, OfiOperation& operation) {
    const auto remote = memory_.remote(peer.groundKey, peer.ground, sizeof(ground_->landing));
    return ::fi_read(&fabric_->endpoint(), &ground_->landing, sizeof(ground_->landing),
                     groundDescriptor_, peer.address, remote.address, remote.key,
                     &operation.context);
}

void OfiDevice::postReceive(OfiOperation& operation) {
    const long result = ::fi_recv(&fabric_->endpoint(), operation.local, operation.bytes,
                                  operation.descriptor, FI_ADDR_UNSPEC, &operation.context);
    if (result == 0) return;
    if (result != -FI_EAGAIN) {
        failAll(Status::resource("ofi: fi_recv: " + fabric_->library().causeOf(result)));
    }
    unposted_.push_back(&operation);
}

/// Those that the provider had no room for.
int OfiDevice::postReceives() {
    const auto before = unposted_.size();
    for (OfiOperation* const each : std::exchange(unposted_, {})) postReceive(*each);
    return static_cast<int>(before - unposted_.size());
}

}  // namespace isthmus
