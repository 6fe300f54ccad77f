#include "comm/memory/peer_read.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>

namespace isthmus {

Status readPeer(int pid, std::byte* to, const std::byte* from, std::size_t bytes) {
    while (bytes > 0) {
        const iovec here{to, bytes};
        const iovec there{const_cast<std::byte*>(from), bytes};
        const ssize_t got = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (got > 0) {  // the kernel moves 2 GiB at most at once
            to += got;
            from += got;
            bytes -= static_cast<std::size_t>(got);
            continue;
        }
        const int error = got == 0 ? EFAULT : errno;
        const std::string what =
            "memory of process " + std::to_string(pid) + " cannot be read: " + std::strerror(error);
        if (error == ESRCH) return Status::peerLost(what);
        if (error == EFAULT) return Status::invalidArgument(what);
        return Status::configuration(what);
    }
    return {};
}

ReadMark ReadMark::ofProcess() {
    static const std::uint64_t value = [] {
        std::random_device source;
        return (static_cast<std::uint64_t>(source()) << 32) | source();
    }();
    return {::getpid(), reinterpret_cast<std::uintptr_t>(&value), value};
}

bool ReadMark::isReadable() const {
    if (pid <= 0 || address == 0) return false;
    std::uint64_t found = 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): of another process
    const auto* const from = reinterpret_cast<const std::byte*>(address);
    return readPeer(pid, reinterpret_cast<std::byte*>(&found), from, sizeof(found)).ok() &&
           found == value;
}

}  // namespace isthmus
