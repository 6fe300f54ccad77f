// Stands for the device in builds without libfabric's headers.
#include "comm/transport/ofi/ofi_device.hpp"

namespace isthmus {

namespace {

Status missing() {
    return Status::unsupported(
        "this build is without libfabric: install its headers (libfabric-dev on Debian) and build "
        "again");
}

}  // namespace

Result<std::unique_ptr<RmaDevice>> makeOfiDevice(const OfiOptions&) {
    return missing();
}

Result<std::string> describeOfi() {
    return missing();
}

}  // namespace isthmus
