#include "comm/bootstrap/host_identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <fstream>

#include "comm/base/bytes.hpp"

namespace isthmus {

namespace {

/// Namespaces are told apart by inode number on the nsfs device (namespaces(7)).
std::uint64_t inodeOf(const char* path) {
    struct stat facts {};
    return ::stat(path, &facts) == 0 ? facts.st_ino : 0;
}

std::uint64_t deviceOf(const char* path) {
    struct stat facts {};
    return ::stat(path, &facts) == 0 ? facts.st_dev : 0;
}

}  // namespace

Result<HostIdentity> thisHost() {
    HostIdentity identity;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> identity.bootId;
    identity.networkNamespace = inodeOf("/proc/self/ns/net");
    identity.pidNamespace = inodeOf("/proc/self/ns/pid");
    identity.ipcNamespace = inodeOf("/proc/self/ns/ipc");
    identity.mountNamespace = inodeOf("/proc/self/ns/mnt");
    identity.sharedMemoryDevice = deviceOf("/dev/shm");
    char host[HOST_NAME_MAX + 1] = "";
    ::gethostname(host, HOST_NAME_MAX);
    identity.hostName = host;
    identity.processId = ::getpid();
    if (identity.bootId.empty() || identity.networkNamespace == 0) {
        return Status::internal("cannot tell which host this is: /proc cannot be read");
    }
    return identity;
}

bool mayShareMemory(const HostIdentity& one, const HostIdentity& other) {
    return one.bootId == other.bootId && one.networkNamespace == other.networkNamespace &&
           one.pidNamespace == other.pidNamespace && one.ipcNamespace == other.ipcNamespace &&
           one.mountNamespace == other.mountNamespace &&
           one.sharedMemoryDevice == other.sharedMemoryDevice;
}

Bytes toBytes(const HostIdentity& identity) {
    return ByteWriter()
        .put(identity.bootId)
        .put(identity.networkNamespace)
        .put(identity.pidNamespace)
        .put(identity.ipcNamespace)
        .put(identity.mountNamespace)
        .put(identity.sharedMemoryDevice)
        .put(identity.hostName)
        .put(identity.processId)
        .take();
}

Result<HostIdentity> hostIdentityFrom(std::span<const std::byte> data) {
    ByteReader reader(data);
    HostIdentity identity;
    identity.bootId = reader.getText();
    identity.networkNamespace = reader.get<std::uint64_t>();
    identity.pidNamespace = reader.get<std::uint64_t>();
    identity.ipcNamespace = reader.get<std::uint64_t>();
    identity.mountNamespace = reader.get<std::uint64_t>();
    identity.sharedMemoryDevice = reader.get<std::uint64_t>();
    identity.hostName = reader.getText();
    identity.processId = reader.get<std::int32_t>();
    if (!reader.ok() || !reader.atEnd()) {
        return Status::mismatch("a host identity that cannot be read");
    }
    return identity;
}

std::string describe(const HostIdentity& identity) {
    return "process " + std::to_string(identity.processId) + " on " + identity.hostName;
}

}  // namespace isthmus
