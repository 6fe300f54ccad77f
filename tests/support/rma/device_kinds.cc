#include "tests/support/rma/device_kinds.hpp"

#include <algorithm>
#include <iostream>

#include "comm/transport/ofi/ofi_device.hpp"
#include "comm/transport/ucx/ucx_device.hpp"
#include "tests/support/rma/stand_in_device.hpp"
#include "tests/support/rma/strict_device.hpp"

namespace isthmus {

namespace {

using Made = Result<std::unique_ptr<RmaDevice>>;

Made ucxWith(const char* transports, bool emulatesTransfers = false) {
    UcxOptions options;
    options.transports = transports;
    options.emulatesTransfers = emulatesTransfers;
    return makeUcxDevice(options);
}

Made ofiWith(const char* provider, bool confirmsByReading = false) {
    return makeOfiDevice({provider, "127.0.0.1", confirmsByReading});
}

struct Kind {
    const char* name;
    Made (*make)();
};
constexpr Kind kKinds[] = {
    {"standin", [] { return Made(makeStandInDevice()); }},
    {"ofi_shm", [] { return ofiWith("shm"); }},
    {"ofi_tcp", [] { return ofiWith("tcp;ofi_rxm"); }},
    {"ofi_tcp_confirmed", [] { return ofiWith("tcp;ofi_rxm", true); }},
    {"ucx_posix", [] { return ucxWith("posix,self"); }},
    {"ucx_sysv", [] { return ucxWith("sysv,self"); }},
    {"ucx_cma", [] { return ucxWith("posix,cma,self"); }},
    {"ucx_tcp", [] { return ucxWith("tcp,self"); }},
    {"ucx_put", [] { return ucxWith("tcp,self", true); }},
};
const std::string kStrict = "strict_";
const std::string kDropping = "dropping";

/// A kind's name, taken apart.
struct Wish {
    std::string name;
    bool isStrict = false;
    int dropAfter = 0;
};

Wish wishOf(std::string kind) {
    Wish wish;
    if (kind.starts_with(kDropping)) {
        wish.dropAfter = std::stoi(kind.substr(kDropping.size()));
        kind = kStrict + kind.substr(kind.find('_') + 1);
    }
    wish.isStrict = kind.starts_with(kStrict);
    wish.name = wish.isStrict ? kind.substr(kStrict.size()) : kind;
    return wish;
}

std::vector<std::string> findKinds() {
    std::vector<std::string> kinds;
    for (const Kind& each : kKinds) {
        if (const auto device = each.make(); !device.ok()) {
            std::cout << each.name << " is left out: " << device.status().what() << std::endl;
            continue;
        }
        kinds.emplace_back(each.name);
        kinds.push_back(kStrict + each.name);
    }
    return kinds;
}

}  // namespace

const std::vector<std::string>& deviceKinds() {
    static const std::vector<std::string> kinds = findKinds();
    return kinds;
}

std::vector<std::string> enduringDeviceKinds() {
    std::vector<std::string> kinds;
    for (const std::string& kind : deviceKinds()) {
        // UCX 1.13 ends the process when a peer dies to which it answers an emulated put; that is
        // why the transport does without them.
        if (!kind.ends_with("ucx_put")) kinds.push_back(kind);
    }
    return kinds;
}

std::string droppingKind(const std::string& kind, int dropAfter) {
    return kDropping + std::to_string(dropAfter) + "_" + kind;
}

bool isDeviceKind(const std::string& kind) {
    const auto& kinds = deviceKinds();
    return std::find(kinds.begin(), kinds.end(), wishOf(kind).name) != kinds.end();
}

Result<std::unique_ptr<RmaDevice>> makeDevice(const std::string& kind, int member, int failEvery) {
    const Wish wish = wishOf(kind);
    for (const Kind& each : kKinds) {
        if (wish.name != each.name) continue;
        auto made = each.make();
        if (!made.ok() || !wish.isStrict) return made;
        StrictOptions options;
        options.seed = 1 + static_cast<std::uint64_t>(member);
        options.credits = 1 + member % 4;
        options.failEvery = failEvery;
        options.dropAfter = wish.dropAfter;
        return makeStrictDevice(std::move(*made), options);
    }
    return Status::invalidArgument("no device is called " + kind);
}

}  // namespace isthmus

// UCX keeps memory of its own to the end of the process, libfabric forgets connections that are
// closed while they are made; their leaks are not ours to find. The name is the sanitizer's.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
    return "leak:libucs.so\nleak:libucp.so\nleak:libuct.so\nleak:libfabric.so\n";
}
