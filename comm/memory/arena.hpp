#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include <isthmus/status.hpp>

#include "comm/base/unique_fd.hpp"

namespace isthmus {

/// Memory of this process that the node's peers can map: one memfd of fixed (sparse) size, sealed
/// against resizing (memfd_create(2), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL). Pages are
/// reserved with fallocate(2) before they are handed out, so running out is an error here and never
/// a SIGBUS later. Nothing has a name in the file system. A forked child sees the same bytes but
/// writes into copies of its own (pthread_atfork(3)). Thread: any.
class Arena {
public:
    /// `capacityBytes`: address space and upper limit; halves (down to 1 MiB) until the system
    /// grants it. kResource when even that fails.
    static Result<std::unique_ptr<Arena>> create(std::size_t capacityBytes);

    /// What 0 in ISTHMUS_ARENA stands for: the memory of this machine, at most 32 GiB. Sparse:
    /// costs address space only.
    static std::size_t defaultCapacityBytes();
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    /// Zero-filled on first use of a page, else of unknown content; aligned to `alignment` (a power
    /// of two, >= 64 is used). kResource names bytes wanted, in use and capacity. 0 bytes gives a
    /// valid unique pointer.
    Result<void*> allocate(std::size_t bytes, std::size_t alignment = 64);
    /// The same, with every page present and mapped here, so that the first use is as fast as the
    /// next.
    Result<void*> allocatePopulated(std::size_t bytes, std::size_t alignment = 64);

    /// `pointer` must come from allocate (nullptr is nothing). Blocks of 1 MiB and more give their
    /// pages back to the system.
    void free(void* pointer);

    bool owns(const void* pointer) const;
    /// Offset from base() when [pointer, pointer + bytes) lies inside the arena; this is what peers
    /// use.
    std::optional<std::uint64_t> offsetOf(const void* pointer, std::size_t bytes) const;

    std::byte* base() const { return base_; }
    std::size_t capacityBytes() const { return capacityBytes_; }
    std::size_t usedBytes() const;
    int fd() const { return fd_.get(); }

private:
    struct Blocks;
    Arena(UniqueFd fd, std::byte* base, std::size_t capacityBytes);

    Status reserve(std::uint64_t offset, std::size_t bytes);
    void giveBack(std::uint64_t first, std::uint64_t end);
    Status full(std::size_t bytes, std::string_view why) const;

    UniqueFd fd_;
    std::byte* base_;
    std::size_t capacityBytes_;
    mutable std::mutex mutex_;
    std::unique_ptr<Blocks> blocks_;  // guarded by mutex_
};

/// A peer's arena, mapped here. Proves co-location: it can only be made from a descriptor that was
/// received.
class PeerArena {
public:
    /// Checks the seals and the size before mapping (kMismatch otherwise).
    static Result<std::unique_ptr<PeerArena>> map(UniqueFd fd);
    ~PeerArena();
    PeerArena(const PeerArena&) = delete;
    PeerArena& operator=(const PeerArena&) = delete;

    std::byte* base() const { return base_; }
    std::size_t capacityBytes() const { return capacityBytes_; }

private:
    PeerArena(std::byte* base, std::size_t capacityBytes)
        : base_(base), capacityBytes_(capacityBytes) {}

    std::byte* base_;
    std::size_t capacityBytes_;
};

}  // namespace isthmus
