#pragma once

#include <cstddef>
#include <cstdint>

#include <isthmus/status.hpp>

namespace isthmus {

/// Copies `bytes` from `from`, an address in process `pid`, to `to` here: one copy, made by the
/// system (process_vm_readv(2)), of memory that nobody has to map. It asks for the same rights as
/// ptrace(2) does: the same user, and what Yama and the container allow. Any thread.
/// Errors: kPeerLost (no such process), kConfiguration (not permitted, or not in this kernel),
/// kInvalidArgument (not all of it is memory there).
Status readPeer(int pid, std::byte* to, const std::byte* from, std::size_t bytes);

/// What shows that a process of that number is the one meant, and that its memory can be read:
/// numbers differ between PID namespaces, so a number alone says nothing.
struct ReadMark {
    int pid = 0;                ///< as it sees itself
    std::uint64_t address = 0;  ///< of `value`, in its memory
    std::uint64_t value = 0;    ///< random

    /// This process's, the same at every call. Any thread.
    static ReadMark ofProcess();
    /// True when that process's memory can be read from here.
    bool isReadable() const;
};

}  // namespace isthmus
