#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <isthmus/status.hpp>
#include <isthmus/store.hpp>

namespace isthmus {

/// Which operating-system instance a process lives in, as far as processes can see it. Whether two
/// really share memory is proved later, by a descriptor that one received from the other.
struct HostIdentity {
    std::string bootId;  ///< random(4): new at each start of the kernel
    std::uint64_t networkNamespace = 0;
    std::uint64_t pidNamespace = 0;
    std::uint64_t ipcNamespace = 0;
    std::uint64_t mountNamespace = 0;
    std::uint64_t sharedMemoryDevice = 0;  ///< device number of /dev/shm
    std::string hostName;                  ///< for messages only
    std::int32_t processId = 0;

    bool operator==(const HostIdentity&) const = default;
};

/// Who we are. kInternal where /proc is not mounted.
Result<HostIdentity> thisHost();

/// True when both may be on one node: every field but name and process is equal. Compared in full;
/// a digest of it decides nothing.
bool mayShareMemory(const HostIdentity& one, const HostIdentity& other);

Bytes toBytes(const HostIdentity& identity);
Result<HostIdentity> hostIdentityFrom(std::span<const std::byte> data);

/// "process 4711 on node-a": how messages name a process.
std::string describe(const HostIdentity& identity);

}  // namespace isthmus
