#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <isthmus/store.hpp>

#include "comm/transport/ofi/ofi_device.hpp"
#include "comm/transport/ofi/ofi_library.hpp"

namespace isthmus {

/// How a put is known to be visible at the peer.
enum class OfiVisibility : std::uint8_t {
    kDelivered,  ///< the provider says so (FI_DELIVERY_COMPLETE)
    kConfirmed,  ///< a read behind it has come back (FI_ORDER_RAW)
};

class OfiFabric;

/// Closes what was opened. shm lets the endpoints of one process look into one another's memory
/// without a mapping of their own (libfabric 1.17, smr_map_to_region): those close with the last.
struct OfiRetire {
    void operator()(OfiFabric* fabric) const;
};
using OfiFabricHold = std::unique_ptr<OfiFabric, OfiRetire>;

/// One endpoint of one provider with what it needs, open and ready.
class OfiFabric {
public:
    static Result<OfiFabricHold> open(const OfiOptions& options);

    const OfiLibrary& library() const { return library_; }
    const fi_info& info() const { return *info_; }
    std::string provider() const { return info_->fabric_attr->prov_name; }
    OfiVisibility visibility() const { return visibility_; }
    bool needs(int memoryMode) const { return (info_->domain_attr->mr_mode & memoryMode) != 0; }
    bool isOrdered(std::uint64_t order) const {
        return (info_->tx_attr->msg_order & order) == order;
    }
    /// Only processes of this node can be reached.
    bool isLocal() const { return info_->addr_format == FI_ADDR_STR; }

    fid_fabric& fabric() const { return *fabric_; }
    fid_domain& domain() const { return *domain_; }
    fid_av& addresses() const { return *addresses_; }
    fid_cq& completions() const { return *completions_; }
    fid_ep& endpoint() const { return *endpoint_; }
    /// Becomes readable with completions; -1: the provider has none.
    int waitDescriptor() const { return waitDescriptor_; }
    /// The endpoint's address, in the provider's format.
    Result<Bytes> name() const;

private:
    OfiFabric(const OfiLibrary& library, OfiInfo info, OfiVisibility visibility)
        : library_(library), info_(std::move(info)), visibility_(visibility) {}

    Status openAll();
    Status openCompletions();
    Status check(const char* what, long result) const;

    const OfiLibrary& library_;
    const OfiInfo info_;
    const OfiVisibility visibility_;
    // Closed from last to first.
    OfiObject<fid_fabric> fabric_;
    OfiObject<fid_domain> domain_;
    OfiObject<fid_av> addresses_;
    OfiObject<fid_cq> completions_;
    OfiObject<fid_ep> endpoint_;
    int waitDescriptor_ = -1;
};

}  // namespace isthmus
