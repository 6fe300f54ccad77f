#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <string>

#include <isthmus/status.hpp>

namespace isthmus {

/// The functions of libfabric that are no calls through tables. Of its structures only what 1.17
/// has is used, and they are always allocated by the library: newer ones are longer at their ends.
struct OfiLibrary {
    decltype(&::fi_getinfo) getinfo = nullptr;
    decltype(&::fi_freeinfo) freeinfo = nullptr;
    decltype(&::fi_dupinfo) dupinfo = nullptr;
    decltype(&::fi_fabric) fabric = nullptr;
    decltype(&::fi_version) version = nullptr;
    decltype(&::fi_strerror) strerror = nullptr;

    /// Opened by the first call, for the life of the process. kUnsupported: there is none, or one
    /// older than 1.17. Any thread.
    static Result<const OfiLibrary*> open();

    std::string versionText() const;
    /// Of libfabric's negative results: "Connection refused".
    std::string causeOf(long result) const;
};

/// The version that is asked for: what the library does stays as it was then.
inline constexpr std::uint32_t kOfiVersion = FI_VERSION(1, 17);

struct OfiInfoFree {
    const OfiLibrary* library = nullptr;
    void operator()(fi_info* info) const { library->freeinfo(info); }
};
using OfiInfo = std::unique_ptr<fi_info, OfiInfoFree>;

struct OfiClose {
    template <typename Object>
    void operator()(Object* object) const {
        object->fid.ops->close(&object->fid);
    }
};
template <typename Object>
using OfiObject = std::unique_ptr<Object, OfiClose>;

}  // namespace isthmus
