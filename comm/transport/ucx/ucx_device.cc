#include "comm/transport/ucx/ucx_device.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_map>

#include "comm/transport/ucx/ucx_peer.hpp"

namespace isthmus {

namespace {

/// How long the last messages may take to leave, at the very end.
constexpr std::chrono::milliseconds kLastProgress(20);
constexpr std::size_t kTransferBytes = std::size_t{1} << 30;

class UcxDevice final : public RmaDevice {
public:
    UcxDevice(const UcxLibrary& library, const UcxOptions& options)
        : library_(library), options_(options) {
        limits_.messageBytes = UcxPeer::kMessageBytes;
    }
    ~UcxDevice() override;

    Status open();

    std::string_view name() const override { return "ucx"; }
    std::string describe() const override {
        return "UCX " + library_.version() + ", transports " + options_.transports;
    }
    const RmaLimits& limits() const override { return limits_; }
    Bytes address() const override { return address_; }
    Result<RmaPeer> connect(std::span<const std::byte> address) override;
    void disconnect(RmaPeer peer, Ending ending) override { peers_.at(peer)->end(ending); }

    Result<RmaRegion> registerMemory(std::byte* address, std::size_t bytes) override;
    Bytes key(RmaRegion region) const override;
    void deregister(RmaRegion region) override;
    Result<RmaKey> importKey(RmaPeer peer, std::span<const std::byte> key) override;
    void dropKey(RmaKey key) override;

    RmaPost post(RmaPeer peer, std::span<const iovec> pieces) override {
        return peers_.at(peer)->post(pieces);
    }
    RmaPost put(RmaPeer peer, const RmaTransfer& transfer) override {
        return peers_.at(peer)->put(transfer, keys_.at(transfer.key));
    }
    RmaPost get(RmaPeer peer, const RmaTransfer& transfer) override {
        return peers_.at(peer)->get(transfer, keys_.at(transfer.key));
    }

    int progress(RmaListener& listener) override;
    int eventDescriptor() const override { return events_; }
    bool arm() override;
    Time nextEvent() const override { return Time::max(); }

private:
    struct Region {
        ucp_mem_h memory = nullptr;
        Bytes key;
    };

    static ucs_status_t arrived(void* self, const void*, std::size_t, void* data, std::size_t bytes,
                                const ucp_am_recv_param_t*);
    Status failure(const char* what, ucs_status_t status) const;
    int settle();
    Status openContext();
    Status openWorker();

    const UcxLibrary& library_;
    const UcxOptions options_;
    RmaLimits limits_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    int events_ = -1;
    Bytes address_;
    RmaListener* listener_ = nullptr;  // inside progress
    std::map<RmaPeer, std::unique_ptr<UcxPeer>> peers_;
    std::vector<std::unique_ptr<UcxPeer>> left_;  // disconnected, and not closed by UCX yet
    std::unordered_map<RmaKey, ucp_rkey_h> keys_;
    std::uint64_t lastId_ = 0;
    UcxNews news_;

    mutable std::mutex mutex_;
    std::unordered_map<RmaRegion, Region> regions_;  // guarded by mutex_
    std::uint64_t lastRegion_ = 0;                   // guarded by mutex_
};

Status UcxDevice::failure(const char* what, ucs_status_t status) const {
    return Status::configuration(std::string("ucx with transports ") + options_.transports + ": " +
                                 what + ": " + library_.statusString(status));
}

UcxDevice::~UcxDevice() {
    for (const auto& [id, key] : keys_) library_.keyDestroy(key);
    for (const auto& [id, region] : regions_) library_.memUnmap(context_, region.memory);
    for (auto& [id, peer] : peers_) left_.push_back(std::move(peer));
    const auto isQuiet = [](const auto& peer) { return peer->isQuiet(); };
    const SteadyClock clock;
    const Time end = clock.now() + kLastProgress;
    while (!std::all_of(left_.begin(), left_.end(), isQuiet) && clock.now() < end) {
        library_.workerProgress(worker_);
    }
    if (!std::all_of(left_.begin(), left_.end(), isQuiet)) {
        // UCX 1.13 ends the process when a worker is destroyed over a flush (ucp_ep.c,
        // ucp_ep_remove_filter): memory that the process keeps to its end is the lesser evil.
        for (auto& peer : left_) (void)peer.release();
        return;
    }
    if (worker_ != nullptr) library_.workerDestroy(worker_);
    if (context_ != nullptr) library_.cleanup(context_);
}

Status UcxDevice::open() {
    ISTHMUS_TRY(openContext());
    return openWorker();
}

Status UcxDevice::openContext() {
    ucp_config_t* config = nullptr;
    ucs_status_t status = library_.configRead(nullptr, nullptr, &config);
    if (status != UCS_OK) return failure("its configuration", status);
    status = library_.configModify(config, "TLS", options_.transports.c_str());
    if (status == UCS_OK && !options_.devices.empty()) {
        status = library_.configModify(config, "NET_DEVICES", options_.devices.c_str());
    }
    if (status == UCS_OK) {
        ucp_params_t parameters{};
        parameters.field_mask =
            UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
        parameters.features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
        parameters.mt_workers_shared = 1;  // memory is registered from any thread
        parameters.name = "isthmus";
        status = library_.initVersion(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &context_);
    }
    library_.configRelease(config);
    return status == UCS_OK ? Status() : failure("opening it", status);
}

Status UcxDevice::openWorker() {
    ucp_worker_params_t parameters{};
    parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    ucs_status_t status = library_.workerCreate(context_, &parameters, &worker_);
    if (status != UCS_OK) return failure("a worker", status);
    status = library_.workerGetEfd(worker_, &events_);
    if (status != UCS_OK) return failure("a descriptor to sleep on", status);
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                         UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = 0;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG;
    handler.cb = &UcxDevice::arrived;
    handler.arg = this;
    status = library_.workerSetAmRecvHandler(worker_, &handler);
    if (status != UCS_OK) return failure("active messages", status);
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    status = library_.workerGetAddress(worker_, &address, &bytes);
    if (status != UCS_OK) return failure("an address", status);
    const auto* const raw = reinterpret_cast<const std::byte*>(address);
    address_.assign(raw, raw + bytes);
    library_.workerReleaseAddress(worker_, address);
    return {};
}

Result<RmaPeer> UcxDevice::connect(std::span<const std::byte> address) {
    const RmaPeer id{++lastId_};
    auto peer = std::make_unique<UcxPeer>(library_, id, news_);
    Status opened = peer->open(worker_, address, options_.emulatesTransfers);
    if (!opened.ok()) return opened;
    if (peer->canTransfer()) limits_.transferBytes = kTransferBytes;
    peers_[id] = std::move(peer);
    return id;
}

Result<RmaRegion> UcxDevice::registerMemory(std::byte* address, std::size_t bytes) {
    ucp_mem_map_params_t parameters{};
    parameters.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    parameters.address = address;
    parameters.length = bytes;
    Region region;
    ucs_status_t status = library_.memMap(context_, &parameters, &region.memory);
    if (status != UCS_OK) return Status::resource(library_.statusString(status));
    void* packed = nullptr;
    std::size_t packedBytes = 0;
    status = library_.keyPack(context_, region.memory, &packed, &packedBytes);
    if (status != UCS_OK || packedBytes > kLongestRmaKey) {
        if (status == UCS_OK) library_.keyBufferRelease(packed);
        library_.memUnmap(context_, region.memory);
        return Status::resource("ucx: no key for memory");
    }
    const auto* const raw = static_cast<const std::byte*>(packed);
    region.key.assign(raw, raw + packedBytes);
    library_.keyBufferRelease(packed);
    const std::lock_guard lock(mutex_);
    const RmaRegion id{++lastRegion_};
    regions_[id] = std::move(region);
    return id;
}

Bytes UcxDevice::key(RmaRegion region) const {
    const std::lock_guard lock(mutex_);
    return regions_.at(region).key;
}

void UcxDevice::deregister(RmaRegion id) {
    ucp_mem_h memory = nullptr;
    {
        const std::lock_guard lock(mutex_);
        const auto found = regions_.find(id);
        memory = found->second.memory;
        regions_.erase(found);
    }
    library_.memUnmap(context_, memory);
}

Result<RmaKey> UcxDevice::importKey(RmaPeer peer, std::span<const std::byte> key) {
    ucp_rkey_h unpacked = nullptr;
    if (key.empty() || key.size() > kLongestRmaKey) return Status::mismatch("ucx: no key");
    if (!peers_.at(peer)->canTransfer()) return Status::unsupported("ucx: no transfers with it");
    const ucs_status_t status =
        library_.keyUnpack(peers_.at(peer)->endpoint(), key.data(), &unpacked);
    if (status != UCS_OK) return Status::mismatch(library_.statusString(status));
    const RmaKey id{++lastId_};
    keys_[id] = unpacked;
    return id;
}

void UcxDevice::dropKey(RmaKey key) {
    const auto found = keys_.find(key);
    library_.keyDestroy(found->second);
    keys_.erase(found);
}

ucs_status_t UcxDevice::arrived(void* self, const void*, std::size_t, void* data, std::size_t bytes,
                                const ucp_am_recv_param_t*) {
    auto& device = *static_cast<UcxDevice*>(self);
    const std::span message(static_cast<const std::byte*>(data), bytes);
    if (device.listener_ != nullptr) {
        device.listener_->arrived(message);
    } else {  // from inside a post to this process itself
        device.news_.arrived.emplace_back(message.begin(), message.end());
    }
    return UCS_OK;
}

int UcxDevice::progress(RmaListener& listener) {
    listener_ = &listener;
    int count = static_cast<int>(library_.workerProgress(worker_));
    listener_ = nullptr;
    if (std::exchange(news_.isUnsettled, false)) count += settle();
    if (news_.isEmpty()) return count;
    UcxNews news{.isUnsettled = news_.isUnsettled};
    std::swap(news, news_);
    for (const Bytes& message : news.arrived) listener.arrived(message);
    for (const auto& [context, outcome] : news.completed) listener.completed(context, outcome);
    for (const auto& [id, why] : news.failed) listener.failed(id, why);
    for (const RmaPeer id : news.ended) {
        const auto ended = peers_.find(id);
        left_.push_back(std::move(ended->second));
        peers_.erase(ended);
        listener.disconnected(id);
    }
    return count + static_cast<int>(news.arrived.size() + news.completed.size() +
                                    news.failed.size() + news.ended.size());
}

int UcxDevice::settle() {
    int count = 0;
    for (const auto& [id, peer] : peers_) count += peer->progress();
    for (const auto& peer : left_) count += peer->progress();
    std::erase_if(left_, [](const auto& peer) { return peer->isForgotten(); });
    return count;
}

bool UcxDevice::arm() {
    if (!news_.isEmpty()) return false;
    for (const auto& [id, peer] : peers_) {
        if (peer->hasWork()) return false;
    }
    return library_.workerArm(worker_) == UCS_OK;
}

}  // namespace

Result<std::string> describeUcx(const std::string& library) {
    const auto opened = UcxLibrary::open(library);
    if (!opened.ok()) return opened.status();
    return "UCX " + (*opened)->version();
}

Result<std::unique_ptr<RmaDevice>> makeUcxDevice(const UcxOptions& options) {
    const auto library = UcxLibrary::open(options.library);
    if (!library.ok()) return library.status();
    auto device = std::make_unique<UcxDevice>(**library, options);
    if (Status opened = device->open(); !opened.ok()) return opened;
    return std::unique_ptr<RmaDevice>(std::move(device));
}

}  // namespace isthmus
