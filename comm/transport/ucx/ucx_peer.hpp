#pragma once

#include <memory>
#include <vector>

#include "comm/transport/rma/rma_device.hpp"
#include "comm/transport/ucx/ucx_library.hpp"

namespace isthmus {

/// What came to its end inside UCX and is told by the next progress.
struct UcxNews {
    std::vector<Bytes> arrived;  ///< outside of progress
    std::vector<std::pair<std::uint64_t, Status>> completed;
    std::vector<std::pair<RmaPeer, Status>> failed;
    std::vector<RmaPeer> ended;
    bool isUnsettled = false;  ///< some peer's progress() has something to do

    bool isEmpty() const {
        return arrived.empty() && completed.empty() && failed.empty() && ended.empty();
    }
};

/// One UCP endpoint and what is under way on it. In error mode PEER where UCX has a way there that
/// notices the end of the other; else (shared memory of UCX 1.13) without: then nothing but copied
/// messages goes there, and an endpoint that UCX cannot close at once is left behind.
class UcxPeer {
public:
    UcxPeer(const UcxLibrary& library, RmaPeer id, UcxNews& news)
        : library_(library), id_(id), news_(news) {}

    /// kMismatch, kUnsupported. `emulates`: transfers by messages of UCX will do.
    Status open(ucp_worker_h worker, std::span<const std::byte> address, bool emulates);
    ucp_ep_h endpoint() const { return endpoint_; }
    bool canTransfer() const { return canTransfer_; }

    RmaPost post(std::span<const iovec> pieces);
    RmaPost put(const RmaTransfer& transfer, ucp_rkey_h key);
    RmaPost get(const RmaTransfer& transfer, ucp_rkey_h key);
    void end(RmaDevice::Ending ending);

    /// Asks for the visibility of puts that nothing was asked for yet, and goes on with the end.
    /// Returns how many things happened.
    int progress();
    bool hasWork() const { return !unconfirmed_.empty() || hasRoomAgain_; }
    /// UCX will not call back about it, until something new is begun.
    bool isQuiet() const { return messages_ == 0 && transfers_ == 0 && isClosing_ == hasClosed_; }
    /// Nothing of it is known to UCX any more.
    bool isForgotten() const { return hasClosed_ && isQuiet(); }

    static constexpr std::size_t kMessageBytes = 8 * 1024 - 128;

private:
    struct Request {
        UcxPeer* peer = nullptr;
        enum Kind : std::uint8_t { kMessage, kPut, kGet, kFlush, kClose } kind = kMessage;
        std::vector<std::byte> message;
        std::uint64_t context = 0;
        std::vector<std::uint64_t> batch;  ///< puts that this flush makes visible
    };

    static void failed(void* self, ucp_ep_h endpoint, ucs_status_t status);
    static void finished(void* request, ucs_status_t status, void* user);
    Request* request(Request::Kind kind);
    ucp_request_param_t parameters(Request& request) const;
    void started(Request& request, ucs_status_ptr_t outcome);
    void ended(Request& request, ucs_status_t status);
    ucs_status_t create(ucp_worker_h worker, std::span<const std::byte> address,
                        ucp_err_handling_mode_t mode);
    void flush();
    void close();
    bool isOver() const;
    bool mayClose() const;
    bool isDelivered() const;
    bool hasOwnWay() const;
    Status statusOf(ucs_status_t status) const;
    bool isClosed() const { return isEnding_ || hasFailed_; }

    const UcxLibrary& library_;
    const RmaPeer id_;
    UcxNews& news_;
    ucp_ep_h endpoint_ = nullptr;
    std::vector<std::unique_ptr<Request>> all_;
    std::vector<Request*> free_;
    int messages_ = 0;   // under way
    int transfers_ = 0;  // under way, with their flushes
    std::vector<std::uint64_t> unconfirmed_;
    bool noticesEnds_ = true;
    bool canTransfer_ = false;
    bool hasRefused_ = false;
    bool hasRoomAgain_ = false;
    bool hasFailed_ = false;
    bool isEnding_ = false;
    bool mustEnd_ = false;
    bool isFlushingLast_ = false;
    bool isClosing_ = false;
    bool hasClosed_ = false;
    bool hasToldEnd_ = false;
};

}  // namespace isthmus
