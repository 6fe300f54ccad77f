#include "comm/transport/ofi/ofi_fabric.hpp"

#include <mutex>
#include <vector>

#include "comm/transport/ofi/ofi_choice.hpp"

namespace isthmus {

namespace {

struct Retired {
    std::mutex mutex;
    int living = 0;
    std::vector<std::unique_ptr<OfiFabric>> fabrics;
};

Retired& retired() {
    static Retired all;
    return all;
}

}  // namespace

void OfiRetire::operator()(OfiFabric* fabric) const {
    std::unique_ptr<OfiFabric> owned(fabric);
    if (!fabric->isLocal()) return;
    const std::lock_guard lock(retired().mutex);
    retired().fabrics.push_back(std::move(owned));
    if (--retired().living == 0) retired().fabrics.clear();
}

Result<OfiFabricHold> OfiFabric::open(const OfiOptions& options) {
    const auto library = OfiLibrary::open();
    if (!library.ok()) return library.status();
    auto choice = chooseOfi(**library, options);
    if (!choice.ok()) return choice.status();
    OfiFabricHold made(new OfiFabric(**library, std::move(choice->info), choice->visibility));
    if (made->isLocal()) {
        const std::lock_guard lock(retired().mutex);
        ++retired().living;
    }
    ISTHMUS_TRY(made->openAll());
    return made;
}

Status OfiFabric::check(const char* what, long result) const {
    if (result >= 0) return {};
    const auto code =
        result == -FI_EADDRNOTAVAIL ? Status::Code::kConfiguration : Status::Code::kResource;
    return {code, "libfabric's " + provider() + ": " + what + ": " + library_.causeOf(result)};
}

Status OfiFabric::openAll() {
    fid_fabric* fabric = nullptr;
    ISTHMUS_TRY(check("fi_fabric", library_.fabric(info_->fabric_attr, &fabric, nullptr)));
    fabric_.reset(fabric);
    fid_domain* domain = nullptr;
    ISTHMUS_TRY(check("fi_domain", ::fi_domain(fabric, info_.get(), &domain, nullptr)));
    domain_.reset(domain);
    fi_av_attr table{};
    table.type = FI_AV_TABLE;
    fid_av* addresses = nullptr;
    ISTHMUS_TRY(check("fi_av_open", ::fi_av_open(domain, &table, &addresses, nullptr)));
    addresses_.reset(addresses);
    ISTHMUS_TRY(openCompletions());
    fid_ep* endpoint = nullptr;
    ISTHMUS_TRY(check("fi_endpoint", ::fi_endpoint(domain, info_.get(), &endpoint, nullptr)));
    endpoint_.reset(endpoint);
    ISTHMUS_TRY(check("fi_ep_bind", ::fi_ep_bind(endpoint, &addresses->fid, 0)));
    ISTHMUS_TRY(
        check("fi_ep_bind", ::fi_ep_bind(endpoint, &completions_->fid, FI_TRANSMIT | FI_RECV)));
    return check("fi_enable", ::fi_enable(endpoint));
}

Status OfiFabric::openCompletions() {
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_MSG;
    queue.size = info_->tx_attr->size + info_->rx_attr->size;
    queue.wait_obj = FI_WAIT_FD;
    fid_cq* completions = nullptr;
    if (::fi_cq_open(domain_.get(), &queue, &completions, nullptr) == 0) {
        completions_.reset(completions);
        if (::fi_control(&completions->fid, FI_GETWAIT, &waitDescriptor_) == 0) return {};
        waitDescriptor_ = -1;
        return {};
    }
    queue.wait_obj = FI_WAIT_NONE;
    ISTHMUS_TRY(check("fi_cq_open", ::fi_cq_open(domain_.get(), &queue, &completions, nullptr)));
    completions_.reset(completions);
    return {};
}

Result<Bytes> OfiFabric::name() const {
    Bytes name(1024);
    std::size_t bytes = name.size();
    ISTHMUS_TRY(check("fi_getname", ::fi_getname(&endpoint_->fid, name.data(), &bytes)));
    name.resize(bytes);
    return name;
}

}  // namespace isthmus
