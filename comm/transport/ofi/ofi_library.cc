#include "comm/transport/ofi/ofi_library.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace isthmus {

namespace {

constexpr const char* kName = "libfabric.so.1";

template <typename Function>
bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

Result<OfiLibrary> load() {
    // Without it a connection that is given up stays, with what was queued on it (fi_av(3),
    // "Removing an address"). The library reads it once, in its first call.
    ::setenv("FI_AV_REMOVE_CLEANUP", "1", 0);
    void* const handle = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* const why = ::dlerror();
        return Status::unsupported("no libfabric here (install libfabric1, 1.17 or newer): " +
                                   std::string(why == nullptr ? kName : why));
    }
    OfiLibrary library;
    if (!find(handle, "fi_getinfo", library.getinfo) ||
        !find(handle, "fi_freeinfo", library.freeinfo) ||
        !find(handle, "fi_dupinfo", library.dupinfo) ||
        !find(handle, "fi_fabric", library.fabric) ||
        !find(handle, "fi_version", library.version) ||
        !find(handle, "fi_strerror", library.strerror)) {
        return Status::unsupported(std::string(kName) + " lacks a function of libfabric");
    }
    if (FI_VERSION_LT(library.version(), kOfiVersion)) {
        return Status::unsupported("libfabric " + library.versionText() +
                                   " is older than 1.17; install a newer one");
    }
    return library;
}

}  // namespace

Result<const OfiLibrary*> OfiLibrary::open() {
    static const Result<OfiLibrary> loaded = load();
    if (!loaded.ok()) return loaded.status();
    return &*loaded;
}

std::string OfiLibrary::versionText() const {
    const std::uint32_t both = version();
    return std::to_string(FI_MAJOR(both)) + "." + std::to_string(FI_MINOR(both));
}

std::string OfiLibrary::causeOf(long result) const {
    return strerror(static_cast<int>(result < 0 ? -result : result));
}

}  // namespace isthmus
