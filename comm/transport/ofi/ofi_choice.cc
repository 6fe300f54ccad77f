#include "comm/transport/ofi/ofi_choice.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/transport/ofi/ofi_local_name.hpp"

namespace isthmus {

namespace {

/// Not taken unless asked for: for tests, deprecated, or inside one node only.
constexpr std::array<std::string_view, 5> kOnlyByName = {"udp", "sockets", "net", "shm", "sm2"};

/// What is asked for, best first. Send after send keeps messages in order; read after send proves
/// before a farewell that they arrived; read after write that a put did.
struct Wish {
    std::uint64_t completion = 0;
    std::uint64_t order = 0;
};
constexpr std::array<Wish, 5> kWishes = {{
    {FI_DELIVERY_COMPLETE, FI_ORDER_SAS | FI_ORDER_RAS},
    {FI_DELIVERY_COMPLETE, FI_ORDER_SAS},
    {FI_DELIVERY_COMPLETE, 0},
    {0, FI_ORDER_SAS | FI_ORDER_RAS | FI_ORDER_RAW},
    {0, FI_ORDER_SAS | FI_ORDER_RAW},
}};

OfiInfo owned(const OfiLibrary& library, fi_info* info) {
    return {info, OfiInfoFree{&library}};
}

OfiInfo hintsFor(const OfiLibrary& library, const Wish& wish, const std::string& provider) {
    OfiInfo hints = owned(library, library.dupinfo(nullptr));
    if (hints == nullptr) return hints;
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
                                  FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_SAFE;  // registrations come from any thread
    hints->domain_attr->av_type = FI_AV_TABLE;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->tx_attr->op_flags = wish.completion;
    hints->tx_attr->msg_order = wish.order;
    hints->rx_attr->msg_order = wish.order;
    if (!provider.empty()) hints->fabric_attr->prov_name = ::strdup(provider.c_str());
    return hints;
}

bool isByIp(const fi_info& info) {
    return info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6 ||
           info.addr_format == FI_SOCKADDR;
}

bool mayBeTaken(const fi_info& info, const std::string& provider) {
    if (info.fabric_attr->prov_name == nullptr) return false;
    const std::string_view name = info.fabric_attr->prov_name;
    if (!provider.empty()) return true;  // libfabric has filtered
    const std::string_view core = name.substr(0, name.find(';'));
    return std::find(kOnlyByName.begin(), kOnlyByName.end(), core) == kOnlyByName.end();
}

OfiInfo firstOf(const OfiLibrary& library, OfiInfo list, const std::string& provider) {
    for (const fi_info* each = list.get(); each != nullptr; each = each->next) {
        if (mayBeTaken(*each, provider)) return owned(library, library.dupinfo(each));
    }
    return owned(library, nullptr);
}

OfiInfo ask(const OfiLibrary& library, const char* node, const char* service, std::uint64_t flags,
            const fi_info& hints) {
    fi_info* list = nullptr;
    if (library.getinfo(kOfiVersion, node, service, flags, &hints, &list) != 0) list = nullptr;
    return owned(library, list);
}

/// The same provider, with an address of ours.
Result<OfiInfo> withAddress(const OfiLibrary& library, OfiInfo found, fi_info& hints,
                            const OfiOptions& options) {
    const std::string provider = found->fabric_attr->prov_name;
    if (hints.fabric_attr->prov_name == nullptr) {
        hints.fabric_attr->prov_name = ::strdup(provider.c_str());
    }
    hints.addr_format = found->addr_format;
    if (found->addr_format == FI_ADDR_STR) {
        sweepLocalNames();
        const std::string name = newLocalName();
        found = firstOf(library, ask(library, nullptr, name.c_str(), FI_SOURCE, hints), provider);
    } else if (isByIp(*found) && !options.address.empty()) {
        found = firstOf(library, ask(library, options.address.c_str(), nullptr, FI_SOURCE, hints),
                        provider);
    }
    if (found == nullptr) {
        return Status::configuration("libfabric's " + provider + " has no card with the address " +
                                     options.address);
    }
    return found;
}

}  // namespace

Result<OfiChoice> chooseOfi(const OfiLibrary& library, const OfiOptions& options) {
    for (const Wish& wish : kWishes) {
        const bool isDelivered = (wish.completion & FI_DELIVERY_COMPLETE) != 0;
        if (isDelivered && options.confirmsByReading) continue;
        const OfiInfo hints = hintsFor(library, wish, options.provider);
        if (hints == nullptr) return Status::resource("libfabric: no memory");
        OfiInfo found =
            firstOf(library, ask(library, nullptr, nullptr, 0, *hints), options.provider);
        if (found == nullptr) continue;
        auto addressed = withAddress(library, std::move(found), *hints, options);
        if (!addressed.ok()) return addressed.status();
        // Each transfer asks for itself; messages need no more than to be on their way.
        (*addressed)->tx_attr->op_flags = 0;
        return OfiChoice{std::move(*addressed),
                         isDelivered ? OfiVisibility::kDelivered : OfiVisibility::kConfirmed};
    }
    const std::string wanted =
        options.provider.empty() ? "no provider" : "no provider \"" + options.provider + "\"";
    return Status::unsupported(
        "libfabric " + library.versionText() + " has " + wanted +
        " here with reliable datagrams, remote writes and a way to know that "
        "they arrived; `fi_info -t FI_EP_RDM` lists what it has");
}

std::vector<std::string> ofiProviders(const OfiLibrary& library) {
    std::vector<std::string> names;
    const OfiInfo hints = hintsFor(library, kWishes[2], "");
    if (hints == nullptr) return names;
    const OfiInfo list = ask(library, nullptr, nullptr, 0, *hints);
    for (const fi_info* each = list.get(); each != nullptr; each = each->next) {
        const std::string name = each->fabric_attr->prov_name;
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return names;
}

}  // namespace isthmus
