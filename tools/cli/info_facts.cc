#include "tools/cli/info_facts.hpp"

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include <boost/version.hpp>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "comm/base/unique_fd.hpp"
#include "comm/transport/ofi/ofi_device.hpp"
#include "comm/transport/ucx/ucx_device.hpp"
#include "topology/discover/select_interface.hpp"

namespace isthmus::cli {
namespace {

TransportFact sharedMemory() {
    const UniqueFd segment(::memfd_create("isthmus-info", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!segment.isOpen())
        return {"shm", false, fmt::format("memfd_create: {}", std::strerror(errno))};
    return {"shm", true,
            "between ranks that prove to be on one node by mapping a segment they were handed"};
}

TransportFact tcp(const NodeSnapshot& node, const Options& options) {
    const std::string& wish = options.text("ISTHMUS_INTERFACE");
    const auto chosen = selectInterfaces(node.netDevices, wish, {"", true});
    if (!chosen.ok()) return {"tcp", false, chosen.status().what()};
    std::string cards;
    for (const InterfaceChoice& each : *chosen) {
        cards += fmt::format("{}{} ({})", cards.empty() ? "" : ", ", each.device, each.address);
    }
    return {"tcp", true,
            fmt::format("between nodes over {}; {}", cards,
                        wish.empty() ? "in a job, the way to the store decides"
                                     : "as ISTHMUS_INTERFACE says")};
}

TransportFact ucx(const Options& options) {
    const auto found = describeUcx(options.text("ISTHMUS_UCX_LIBRARY"));
    if (!found.ok()) return {"ucx", false, found.status().what()};
    return {"ucx", true, *found + ", when ISTHMUS_TRANSPORTS names it"};
}

TransportFact ofi() {
    const auto found = describeOfi();
    if (!found.ok()) return {"ofi", false, found.status().what()};
    return {"ofi", true, *found + "; when ISTHMUS_TRANSPORTS names it"};
}

}  // namespace

std::vector<TransportFact> transportFacts(const NodeSnapshot& node, const Options& options) {
    return {{"inproc", true, "between ranks that are threads of one process"},
            sharedMemory(),
            tcp(node, options),
            ucx(options),
            ofi()};
}

std::vector<std::pair<std::string, std::string>> versionFacts() {
    utsname kernel{};
    ::uname(&kernel);
    return {
        {"isthmus", ISTHMUS_VERSION},
        {"compiler", __VERSION__},
        {"kernel", fmt::format("{} {}", kernel.sysname, kernel.release)},
        {"Boost", fmt::format("{}.{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000,
                              BOOST_VERSION % 100)},
        {"OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                      NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
        {"fmt",
         fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)}};
}

}  // namespace isthmus::cli
