// Stands for the device in builds without UCX's headers.
#include "comm/transport/ucx/ucx_device.hpp"

namespace isthmus {

namespace {

Status missing() {
    return Status::unsupported(
        "this build is without UCX: install its headers (libucx-dev on Debian) and build again");
}

}  // namespace

Result<std::string> describeUcx(const std::string&) {
    return missing();
}

Result<std::unique_ptr<RmaDevice>> makeUcxDevice(const UcxOptions&) {
    return missing();
}

}  // namespace isthmus
