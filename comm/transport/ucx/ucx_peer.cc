#include "comm/transport/ucx/ucx_peer.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace isthmus {

namespace {

/// Messages of one peer that UCX has not taken over yet: 512 KiB.
constexpr int kMostMessages = 64;
constexpr int kMostTransfers = 64;

}  // namespace

ucs_status_t UcxPeer::create(ucp_worker_h worker, std::span<const std::byte> address,
                             ucp_err_handling_mode_t mode) {
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
    parameters.err_mode = mode;
    parameters.err_handler = {&UcxPeer::failed, this};
    return library_.endpointCreate(worker, &parameters, &endpoint_);
}

/// UCX tells it to people only: a line of the endpoint that begins to name its use for transfers.
bool UcxPeer::hasOwnWay() const {
    char* text = nullptr;
    std::size_t bytes = 0;
    std::FILE* const stream = ::open_memstream(&text, &bytes);
    if (stream == nullptr) return false;
    library_.endpointPrint(endpoint_, stream);
    std::fclose(stream);
    const bool has = std::strstr(text, " rma#") != nullptr;
    std::free(text);
    return has;
}

Status UcxPeer::open(ucp_worker_h worker, std::span<const std::byte> address, bool emulates) {
    ucs_status_t status = create(worker, address, UCP_ERR_HANDLING_MODE_PEER);
    if (status == UCS_ERR_UNREACHABLE) {
        noticesEnds_ = false;
        status = create(worker, address, UCP_ERR_HANDLING_MODE_NONE);
    }
    if (status == UCS_OK) {
        canTransfer_ = noticesEnds_ && (emulates || hasOwnWay());
        return {};
    }
    if (status == UCS_ERR_INVALID_ADDR) return Status::mismatch("ucx: an address that is none");
    return Status::unsupported(std::string("ucx: no way to that process: ") +
                               library_.statusString(status));
}

void UcxPeer::failed(void* self, ucp_ep_h, ucs_status_t status) {
    auto& peer = *static_cast<UcxPeer*>(self);
    if (peer.isClosed()) return;
    peer.hasFailed_ = peer.news_.isUnsettled = true;
    peer.news_.failed.emplace_back(peer.id_, peer.statusOf(status));
}

Status UcxPeer::statusOf(ucs_status_t status) const {
    if (status == UCS_OK) return {};
    if (status == UCS_ERR_CANCELED) return Status::aborted("disconnected");
    return Status::peerLost(std::string("ucx: ") + library_.statusString(status));
}

UcxPeer::Request* UcxPeer::request(Request::Kind kind) {
    if (free_.empty()) {
        all_.push_back(std::make_unique<Request>());
        free_.push_back(all_.back().get());
    }
    Request* const taken = free_.back();
    free_.pop_back();
    taken->peer = this;
    taken->kind = kind;
    return taken;
}

ucp_request_param_t UcxPeer::parameters(Request& request) const {
    ucp_request_param_t made{};
    made.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    made.cb.send = &UcxPeer::finished;
    made.user_data = &request;
    return made;
}

/// UCX's answer to a call: done at once, failed at once, or `finished` follows.
void UcxPeer::started(Request& request, ucs_status_ptr_t outcome) {
    if (UCS_PTR_IS_PTR(outcome)) return;
    ended(request, UCS_PTR_RAW_STATUS(outcome));
}

void UcxPeer::finished(void* handle, ucs_status_t status, void* user) {
    auto& request = *static_cast<Request*>(user);
    UcxPeer& peer = *request.peer;
    peer.ended(request, status);
    peer.library_.requestFree(handle);
}

void UcxPeer::ended(Request& request, ucs_status_t status) {
    switch (request.kind) {
    case Request::kMessage:
        --messages_;
        if (std::exchange(hasRefused_, false)) hasRoomAgain_ = news_.isUnsettled = true;
        break;
    case Request::kPut:
        --transfers_;
        // Done here is not visible there: a flush tells.
        if (status == UCS_OK) {
            unconfirmed_.push_back(request.context);
            news_.isUnsettled = true;
        } else {
            news_.completed.emplace_back(request.context, statusOf(status));
        }
        break;
    case Request::kGet:
        --transfers_;
        news_.completed.emplace_back(request.context, statusOf(status));
        break;
    case Request::kFlush:
        --transfers_;
        for (const std::uint64_t context : std::exchange(request.batch, {})) {
            news_.completed.emplace_back(context, statusOf(status));
        }
        break;
    case Request::kClose:
        hasClosed_ = true;
        break;
    }
    free_.push_back(&request);
}

RmaPost UcxPeer::post(std::span<const iovec> pieces) {
    if (isClosed()) return RmaPost::kGone;
    if (messages_ >= kMostMessages) {
        hasRefused_ = true;
        return RmaPost::kFull;
    }
    Request& sent = *request(Request::kMessage);
    sent.message.resize(kMessageBytes);
    std::size_t bytes = 0;
    for (const iovec& piece : pieces) {
        std::memcpy(sent.message.data() + bytes, piece.iov_base, piece.iov_len);
        bytes += piece.iov_len;
    }
    ucp_request_param_t how = parameters(sent);
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_AM_SEND_FLAG_EAGER;
    ++messages_;
    started(sent, library_.amSend(endpoint_, 0, nullptr, 0, sent.message.data(), bytes, &how));
    return RmaPost::kTaken;
}

RmaPost UcxPeer::put(const RmaTransfer& transfer, ucp_rkey_h key) {
    if (isClosed()) return RmaPost::kGone;
    if (transfers_ >= kMostTransfers) return RmaPost::kFull;
    Request& moved = *request(Request::kPut);
    moved.context = transfer.context;
    const ucp_request_param_t how = parameters(moved);
    ++transfers_;
    started(moved,
            library_.put(endpoint_, transfer.local, transfer.bytes, transfer.remote, key, &how));
    return RmaPost::kTaken;
}

RmaPost UcxPeer::get(const RmaTransfer& transfer, ucp_rkey_h key) {
    if (isClosed()) return RmaPost::kGone;
    if (transfers_ >= kMostTransfers) return RmaPost::kFull;
    Request& moved = *request(Request::kGet);
    moved.context = transfer.context;
    const ucp_request_param_t how = parameters(moved);
    ++transfers_;
    started(moved,
            library_.get(endpoint_, transfer.local, transfer.bytes, transfer.remote, key, &how));
    return RmaPost::kTaken;
}

void UcxPeer::flush() {
    Request& flushed = *request(Request::kFlush);
    flushed.batch = std::exchange(unconfirmed_, {});
    const ucp_request_param_t how = parameters(flushed);
    ++transfers_;
    started(flushed, library_.endpointFlush(endpoint_, &how));
}

void UcxPeer::end(RmaDevice::Ending ending) {
    mustEnd_ = mustEnd_ || ending == RmaDevice::Ending::kNow || hasFailed_;
    isEnding_ = news_.isUnsettled = true;
}

void UcxPeer::close() {
    isClosing_ = true;
    Request& closed = *request(Request::kClose);
    ucp_request_param_t how = parameters(closed);
    how.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = noticesEnds_ ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    started(closed, library_.endpointClose(endpoint_, &how));
}

/// Nothing of this process's memory is used for it, and nothing of the peer's is written here.
bool UcxPeer::isOver() const {
    return canTransfer_ ? isForgotten() && unconfirmed_.empty() : isClosing_ || mustEnd_;
}

/// Forced only where memory is at stake or the peer is gone: UCX 1.13 ends the process of a living
/// peer whose connection is forced to an end while it is being made (ucp_ep.inl,
/// ucp_ep_update_remote_id). Without error handling it would wait for a peer that may be gone.
bool UcxPeer::mayClose() const {
    if (isDelivered()) return true;
    return noticesEnds_ && (hasFailed_ || (mustEnd_ && canTransfer_));
}

bool UcxPeer::isDelivered() const {
    return isFlushingLast_ && messages_ == 0 && transfers_ == 0 && unconfirmed_.empty();
}

int UcxPeer::progress() {
    news_.isUnsettled |= isEnding_ && !isForgotten();
    int count = std::exchange(hasRoomAgain_, false) ? 1 : 0;
    if (isClosing_ || hasFailed_) {
        for (const std::uint64_t context : std::exchange(unconfirmed_, {})) {
            news_.completed.emplace_back(context, Status::aborted("disconnected"));
        }
    } else if (!unconfirmed_.empty() || (isEnding_ && !isFlushingLast_)) {
        isFlushingLast_ = isEnding_;
        flush();
        ++count;
    }
    if (isEnding_ && !isClosing_ && mayClose()) {
        close();
        ++count;
    }
    if (isEnding_ && !hasToldEnd_ && isOver()) {
        hasToldEnd_ = true;
        news_.ended.push_back(id_);
        ++count;
    }
    return count;
}

}  // namespace isthmus
