#pragma once

#include "comm/transport/ofi/ofi_memory.hpp"
#include "comm/transport/ofi/ofi_peers.hpp"

namespace isthmus {

/// libfabric as an RmaDevice. A put is asked for with FI_DELIVERY_COMPLETE, or followed by a read
/// of the peer's ground, 8 bytes that every device opens for that; the same read is the last thing
/// before an orderly end. What the provider has no room for waits here, so that posts are taken
/// while it still connects.
class OfiDevice final : public RmaDevice {
public:
    static Result<std::unique_ptr<RmaDevice>> open(const OfiOptions& options);
    explicit OfiDevice(OfiFabricHold fabric);

    std::string_view name() const override { return "ofi"; }
    std::string describe() const override;
    const RmaLimits& limits() const override { return limits_; }

    Bytes address() const override { return address_; }
    Result<RmaPeer> connect(std::span<const std::byte> address) override;
    void disconnect(RmaPeer peer, Ending ending) override;

    Result<RmaRegion> registerMemory(std::byte* address, std::size_t bytes) override {
        return memory_.add(address, bytes);
    }
    Bytes key(RmaRegion region) const override { return memory_.key(region); }
    void deregister(RmaRegion region) override { memory_.remove(region); }
    Result<RmaKey> importKey(RmaPeer, std::span<const std::byte> key) override {
        return memory_.import(key);
    }
    void dropKey(RmaKey key) override { memory_.drop(key); }

    RmaPost post(RmaPeer peer, std::span<const iovec> pieces) override;
    RmaPost put(RmaPeer peer, const RmaTransfer& transfer) override {
        return move(peer, transfer, OfiOperation::Kind::kPut);
    }
    RmaPost get(RmaPeer peer, const RmaTransfer& transfer) override {
        return move(peer, transfer, OfiOperation::Kind::kGet);
    }

    int progress(RmaListener& listener) override;

    int eventDescriptor() const override { return fabric_->waitDescriptor(); }
    bool arm() override;
    Time nextEvent() const override;

private:
    struct Done {
        std::uint64_t context = 0;
        Status outcome;
    };
    /// What others read of this device, and where reads of others' grounds go.
    struct Ground {
        std::uint64_t readable = 0;
        std::uint64_t landing = 0;
    };

    // Beginning (ofi_open.cc).
    Status prepare();
    Status registerPool(OfiPool& pool);
    Status makeAddress();
    Status reach(const OfiPlace& place) const;

    // Posting (ofi_post.cc).
    RmaPost move(RmaPeer id, const RmaTransfer& transfer, OfiOperation::Kind kind);
    OfiPeer* takerOf(RmaPeer id);
    /// Hands it to the provider or lets it wait. False: the peer has failed.
    bool submit(OfiPeer& peer, OfiOperation& operation);
    long start(const OfiPeer& peer, OfiOperation& operation);
    long read(const OfiPeer& peer, OfiOperation& operation);
    long readGround(const OfiPeer& peer, OfiOperation& operation);
    long write(const OfiPeer& peer, OfiOperation& operation);
    void started(OfiPeer& peer, OfiOperation& operation);
    /// A message that lies in the peer's memory when the call returns; no more is said of it.
    bool isInjected(const OfiOperation& operation) const {
        return operation.kind == OfiOperation::Kind::kSend && fabric_->isLocal() &&
               operation.bytes <= fabric_->info().tx_attr->inject_size;
    }
    int startWaiting(OfiPeer& peer);
    void postReceive(OfiOperation& operation);
    int postReceives();

    // Progress (ofi_progress.cc).
    int takeCompletions(RmaListener& listener);
    void takeError();
    void completed(OfiOperation& operation, std::size_t bytes, RmaListener& listener);
    void failed(OfiOperation& operation, int cause);
    void confirm(OfiPeer& peer, OfiOperation& operation);
    void ended(OfiOperation& operation, const Status& outcome);
    void fail(OfiPeer& peer, const Status& why);
    void failAll(const Status& why);
    void dropWaiting(OfiPeer& peer, const Status& why);
    int tell(RmaListener& listener);

    // The end of a peer (ofi_end.cc).
    bool beginEnds();
    void flush(RmaPeer id, OfiPeer& peer);
    void remove(OfiPeer& peer);
    void orphan(RmaPeer id);
    std::vector<RmaPeer> finishEnds();
    bool isUnsettled() const;

    const OfiFabricHold fabric_;
    OfiMemory memory_;
    RmaLimits limits_;
    OfiPool receives_;
    OfiPool sends_;
    OfiPool transfers_;
    const std::unique_ptr<Ground> ground_ = std::make_unique<Ground>();
    void* groundDescriptor_ = nullptr;
    Bytes name_;
    Bytes host_;
    Bytes address_;
    OfiPeers peers_;
    std::uint64_t lastPeer_ = 0;
    std::vector<OfiOperation*> unposted_;  // receives that the provider had no room for
    std::vector<Done> done_;               // not told yet
    bool isUnsettled_ = false;             // some peer has something waiting, failed or ends
};

}  // namespace isthmus
