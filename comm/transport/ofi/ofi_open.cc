#include <algorithm>

#include "comm/base/bytes.hpp"
#include "comm/bootstrap/host_identity.hpp"
#include "comm/transport/ofi/ofi_choice.hpp"
#include "comm/transport/ofi/ofi_device_impl.hpp"

namespace isthmus {

namespace {

/// As many as this, or as the provider's queues hold.
constexpr std::size_t kOperations = 256;
/// Longest message: what a provider copies at once where that is a good part of a frame, else what
/// fits the buffers of ofi_rxm (16 KiB) and of EFA (about 8 KiB).
constexpr std::size_t kLeastInject = 1024;
constexpr std::size_t kMostInject = 16 * 1024;
constexpr std::size_t kUsualMessage = 8 * 1024;
constexpr std::size_t kLongestTransfer = std::size_t{1} << 30;
constexpr std::size_t kLongestName = 256;

RmaLimits limitsOf(const OfiFabric& fabric) {
    const fi_info& info = fabric.info();
    RmaLimits limits;
    const std::size_t inject = info.tx_attr->inject_size;
    limits.messageBytes = inject >= kLeastInject ? std::min(inject, kMostInject) : kUsualMessage;
    limits.transferBytes = std::min(info.ep_attr->max_msg_size, kLongestTransfer);
    if (fabric.visibility() == OfiVisibility::kConfirmed) {
        // Reads stay behind writes up to this length (fi_endpoint(3), max_order_raw_size).
        limits.transferBytes = std::min(limits.transferBytes, info.ep_attr->max_order_raw_size);
    }
    limits.messageBytes = std::min(limits.messageBytes, info.ep_attr->max_msg_size);
    limits.isRegistrationCheap = !fabric.needs(FI_MR_ALLOCATED);  // nothing is pinned
    return limits;
}

}  // namespace

OfiDevice::OfiDevice(OfiFabricHold fabric)
    : fabric_(std::move(fabric)),
      memory_(*fabric_),
      limits_(limitsOf(*fabric_)),
      receives_(std::min(kOperations, fabric_->info().rx_attr->size), limits_.messageBytes),
      sends_(std::min(kOperations, fabric_->info().tx_attr->size / 2), limits_.messageBytes),
      transfers_(std::min(kOperations, fabric_->info().tx_attr->size / 2)) {}

Result<std::unique_ptr<RmaDevice>> OfiDevice::open(const OfiOptions& options) {
    auto fabric = OfiFabric::open(options);
    if (!fabric.ok()) return fabric.status();
    auto device = std::make_unique<OfiDevice>(std::move(*fabric));
    ISTHMUS_TRY(device->prepare());
    return std::unique_ptr<RmaDevice>(std::move(device));
}

Status OfiDevice::prepare() {
    ISTHMUS_TRY(registerPool(receives_));
    ISTHMUS_TRY(registerPool(sends_));
    ISTHMUS_TRY(makeAddress());
    while (OfiOperation* const receive = receives_.take()) {
        receive->kind = OfiOperation::Kind::kReceive;
        receive->bytes = limits_.messageBytes;
        postReceive(*receive);
    }
    return {};
}

Status OfiDevice::registerPool(OfiPool& pool) {
    if (!fabric_->needs(FI_MR_LOCAL)) return {};
    const auto region = memory_.add(pool.memory(), pool.memoryBytes());
    if (!region.ok()) return region.status();
    void* const descriptor = memory_.local(*region, pool.memory(), pool.memoryBytes()).descriptor;
    for (OfiOperation& each : pool.all()) each.descriptor = descriptor;
    return {};
}

Status OfiDevice::makeAddress() {
    auto* const ground = reinterpret_cast<std::byte*>(ground_.get());
    const auto region = memory_.add(ground, sizeof(Ground));
    if (!region.ok()) return region.status();
    groundDescriptor_ = memory_.local(*region, ground, sizeof(Ground)).descriptor;
    auto name = fabric_->name();
    if (!name.ok()) return name.status();
    name_ = std::move(*name);
    if (fabric_->isLocal()) {
        const auto host = thisHost();
        if (!host.ok()) return host.status();
        host_ = isthmus::toBytes(*host);
    }
    address_ = isthmus::toBytes(OfiPlace{fabric_->provider(), name_, host_,
                                         reinterpret_cast<std::uint64_t>(&ground_->readable),
                                         memory_.key(*region)});
    return {};
}

std::string OfiDevice::describe() const {
    const fi_info& info = fabric_->info();
    const char* const card = info.domain_attr->name;
    return "libfabric " + fabric_->library().versionText() + ", " + fabric_->provider() +
           (card == nullptr ? "" : " on " + std::string(card));
}

/// Whether a way leads there, as far as it can be told before anything is sent.
Status OfiDevice::reach(const OfiPlace& place) const {
    if (place.provider != fabric_->provider()) {
        return Status::unsupported("ofi: the peer uses " + place.provider + ", this process " +
                                   fabric_->provider());
    }
    if (!fabric_->isLocal()) {
        return place.name.size() == name_.size() ? Status()
                                                 : Status::mismatch("ofi: no name of an endpoint");
    }
    const auto host = hostIdentityFrom(place.host);
    const auto here = hostIdentityFrom(host_);
    if (!host.ok()) return host.status();
    if (!here.ok()) return here.status();
    if (!mayShareMemory(*host, *here)) {
        return Status::unsupported("ofi: " + place.provider + " leads to " +
                                   isthmus::describe(*host) + " from its own node only");
    }
    const bool isText = place.name.size() <= kLongestName && place.name.back() == std::byte{0};
    return isText ? Status() : Status::mismatch("ofi: no name of an endpoint");
}

Result<RmaPeer> OfiDevice::connect(std::span<const std::byte> address) {
    const auto place = ofiPlaceFrom(address);
    if (!place.ok()) return place.status();
    ISTHMUS_TRY(reach(*place));
    const auto groundKey = memory_.import(place->groundKey);
    if (!groundKey.ok()) return groundKey.status();
    OfiPeer peer;
    peer.ground = place->ground;
    peer.groundKey = *groundKey;
    const int inserted =
        ::fi_av_insert(&fabric_->addresses(), place->name.data(), 1, &peer.address, 0, nullptr);
    if (inserted != 1) {
        memory_.drop(*groundKey);
        return Status::unsupported("ofi: " + place->provider + " does not take the address: " +
                                   fabric_->library().causeOf(inserted));
    }
    const RmaPeer id{++lastPeer_};
    peers_.emplace(id, std::move(peer));
    return id;
}

Result<std::unique_ptr<RmaDevice>> makeOfiDevice(const OfiOptions& options) {
    return OfiDevice::open(options);
}

Result<std::string> describeOfi() {
    const auto library = OfiLibrary::open();
    if (!library.ok()) return library.status();
    std::string text = "libfabric " + (*library)->versionText();
    const char* separator = ": ";
    for (const std::string& provider : ofiProviders(**library)) {
        text += separator + provider;
        separator = ", ";
    }
    return text;
}

}  // namespace isthmus
