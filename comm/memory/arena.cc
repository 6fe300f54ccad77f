#include "comm/memory/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/base/assert.hpp"
#include "comm/memory/block_map.hpp"
#include "comm/memory/fork_guard.hpp"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3; glibc 2.36 does not name it
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace isthmus {

namespace {

constexpr std::size_t kKibi = 1024;
constexpr std::size_t kMebi = 1024 * kKibi;
constexpr std::size_t kLeastCapacity = kMebi;

// Pages are reserved in granules: one system call for many small blocks. fallocate is called for at
// most kReserveStep at once (about 1 ms of zeroing), because a signal makes it undo the whole call.
constexpr std::size_t kGranule = 64 * kKibi;
constexpr std::size_t kReserveStep = 2 * kMebi;
constexpr int kReserveAttempts = 100;

// Below this a block's pages stay with the arena: giving back and zeroing again costs 0.6 ms per
// MB.
constexpr std::size_t kGiveBackBytes = kMebi;

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

std::size_t pageBytes() {
    return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t roundUp(std::size_t value, std::size_t step) {
    return (value + step - 1) / step * step;
}

std::string textOf(int error) {
    return std::generic_category().message(error);
}

Status failed(const char* what, std::size_t bytes, int error) {
    return Status::resource("arena of " + std::to_string(bytes) + " bytes: " + what + ": " +
                            textOf(error));
}

/// ftruncate beyond the limit of file sizes would not fail but raise SIGXFSZ.
std::size_t withinFileLimit(std::size_t bytes) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return bytes;
    return std::min<std::size_t>(bytes, limit.rlim_cur / pageBytes() * pageBytes());
}

UniqueFd makeMemoryFile() {
    constexpr unsigned int kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    UniqueFd fd(::memfd_create("isthmus-arena", kFlags | MFD_NOEXEC_SEAL));
    if (!fd.isOpen() && errno == EINVAL) fd.reset(::memfd_create("isthmus-arena", kFlags));
    return fd;
}

Result<std::byte*> mapShared(int fd, std::size_t bytes) {
    void* const base =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) return failed("mmap", bytes, errno);
    return static_cast<std::byte*>(base);
}

/// Makes every page of the block present and writable in this process, without changing a byte.
void populate(std::byte* block, std::size_t bytes) {
    const std::size_t page = pageBytes();
    const std::size_t before = reinterpret_cast<std::uintptr_t>(block) % page;
    std::byte* const first = block - before;
    if (::madvise(first, roundUp(bytes + before, page), MADV_POPULATE_WRITE) == 0) return;
    for (std::size_t at = 0; at < bytes; at += page) {  // an older kernel
        volatile std::byte* const touched = block + at;
        *touched = *touched;
    }
    volatile std::byte* const last = block + bytes - 1;
    *last = *last;
}

}  // namespace

/// Offsets that are taken, and granules whose pages are reserved.
struct Arena::Blocks {
    explicit Blocks(std::size_t capacityBytes)
        : map(capacityBytes), isReserved(roundUp(capacityBytes, kGranule) / kGranule) {}

    BlockMap map;
    std::vector<bool> isReserved;
};

std::size_t Arena::defaultCapacityBytes() {
    constexpr std::size_t kMost = 32 * 1024 * kMebi;
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    return pages <= 0 ? kMost : std::min(kMost, static_cast<std::size_t>(pages) * pageBytes());
}

Result<std::unique_ptr<Arena>> Arena::create(std::size_t capacityBytes) {
    constexpr std::size_t kMost = std::size_t(1) << 46;  // half of what x86-64 can map
    const std::size_t wanted = roundUp(std::clamp(capacityBytes, pageBytes(), kMost), pageBytes());
    const std::size_t most = withinFileLimit(wanted);
    Status failure = Status::resource(
        "arena: a file may have " + std::to_string(most) + " bytes here and " +
        std::to_string(std::min(wanted, kLeastCapacity)) +
        " are the least that is needed (RLIMIT_FSIZE; ulimit -f raises the limit)");
    for (std::size_t bytes = most; bytes != 0 && (bytes == wanted || bytes >= kLeastCapacity);
         bytes = bytes / 2 / pageBytes() * pageBytes()) {
        UniqueFd fd = makeMemoryFile();
        if (!fd.isOpen()) return failed("memfd_create", bytes, errno);
        if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
            failure = failed("ftruncate", bytes, errno);
            continue;
        }
        const Result<std::byte*> base = mapShared(fd.get(), bytes);
        if (!base.ok()) {
            failure = base.status();
            continue;
        }
        if (::fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
            const int error = errno;
            ::munmap(*base, bytes);
            return failed("sealing", bytes, error);
        }
        return std::unique_ptr<Arena>(new Arena(std::move(fd), *base, bytes));
    }
    return failure;
}

Arena::Arena(UniqueFd fd, std::byte* base, std::size_t capacityBytes)
    : fd_(std::move(fd)),
      base_(base),
      capacityBytes_(capacityBytes),
      blocks_(std::make_unique<Blocks>(capacityBytes)) {
    ForkGuard::add({base_, capacityBytes_, fd_.get()});
}

Arena::~Arena() {
    ForkGuard::remove(base_);
    ::munmap(base_, capacityBytes_);
}

Status Arena::full(std::size_t bytes, std::string_view why) const {
    return Status::resource("arena: wanted " + std::to_string(bytes) + " bytes, in use " +
                            std::to_string(blocks_->map.usedBytes()) + ", capacity " +
                            std::to_string(capacityBytes_) + ": " + std::string(why));
}

Result<void*> Arena::allocate(std::size_t bytes, std::size_t alignment) {
    if (!std::has_single_bit(alignment)) {
        return Status::invalidArgument("arena: alignment " + std::to_string(alignment) +
                                       " is not a power of two");
    }
    // Offsets are aligned, and base_ to a page: no more than a page can be promised.
    if (alignment > pageBytes()) {
        return Status::unsupported("arena: alignment " + std::to_string(alignment) +
                                   " is more than a page");
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::optional<std::uint64_t> offset = blocks_->map.take(bytes, alignment);
    if (!offset) return full(bytes, "no free block is large enough");
    if (Status status = reserve(*offset, std::max<std::size_t>(bytes, 1)); !status.ok()) {
        blocks_->map.give(*offset);
        return full(bytes, status.what());
    }
    return static_cast<void*>(base_ + *offset);
}

Result<void*> Arena::allocatePopulated(std::size_t bytes, std::size_t alignment) {
    Result<void*> block = allocate(bytes, alignment);
    if (block.ok() && bytes != 0) populate(static_cast<std::byte*>(*block), bytes);
    return block;
}

Status Arena::reserve(std::uint64_t offset, std::size_t bytes) {
    std::vector<bool>& isReserved = blocks_->isReserved;
    const std::uint64_t end = (offset + bytes + kGranule - 1) / kGranule;
    std::uint64_t firstOfOurs = end;  // granules from here on hold no neighbour
    for (std::uint64_t at = offset / kGranule; at < end;) {
        if (isReserved[at]) {
            ++at;
            continue;
        }
        firstOfOurs = std::min(firstOfOurs, at);
        std::uint64_t stop = at + 1;
        while (stop < end && !isReserved[stop] && stop - at < kReserveStep / kGranule) ++stop;
        const auto first = static_cast<off_t>(at * kGranule);
        const auto last =
            static_cast<off_t>(std::min<std::uint64_t>(stop * kGranule, capacityBytes_));
        int attempts = kReserveAttempts;
        while (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, first, last - first) != 0) {
            if (errno == EINTR && --attempts > 0) continue;
            const int error = errno;
            giveBack(firstOfOurs, at);
            return Status::resource("no memory to reserve: " + textOf(error));
        }
        std::fill(isReserved.begin() + static_cast<std::ptrdiff_t>(at),
                  isReserved.begin() + static_cast<std::ptrdiff_t>(stop), true);
        at = stop;
    }
    return {};
}

/// Returns the pages of granules [first, end) that no block uses.
void Arena::giveBack(std::uint64_t first, std::uint64_t end) {
    for (std::uint64_t at = first; at < end; ++at) {
        if (!blocks_->isReserved[at]) continue;
        const auto begin = static_cast<off_t>(at * kGranule);
        const auto bytes =
            static_cast<off_t>(std::min<std::uint64_t>(kGranule, capacityBytes_ - at * kGranule));
        constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
        // Should it fail, the pages stay reserved, which is true to the books.
        if (::fallocate(fd_.get(), kPunch, begin, bytes) == 0) blocks_->isReserved[at] = false;
    }
}

void Arena::free(void* pointer) {
    if (pointer == nullptr) return;
    ISTHMUS_ASSERT(owns(pointer));
    const std::lock_guard<std::mutex> lock(mutex_);
    const BlockMap::Freed freed =
        blocks_->map.give(static_cast<std::uint64_t>(static_cast<std::byte*>(pointer) - base_));
    if (freed.block.end - freed.block.begin < kGiveBackBytes) return;
    // Granules at its ends may hold neighbours.
    const std::uint64_t first = (freed.hole.begin + kGranule - 1) / kGranule;
    const std::uint64_t end = freed.hole.end == capacityBytes_
                                  ? roundUp(capacityBytes_, kGranule) / kGranule
                                  : freed.hole.end / kGranule;
    giveBack(std::max(first, freed.block.begin / kGranule),
             std::min(end, (freed.block.end + kGranule - 1) / kGranule));
}

bool Arena::owns(const void* pointer) const {
    const auto* const at = static_cast<const std::byte*>(pointer);
    return std::greater_equal<>()(at, base_) && std::less<>()(at, base_ + capacityBytes_);
}

std::optional<std::uint64_t> Arena::offsetOf(const void* pointer, std::size_t bytes) const {
    if (!owns(pointer)) return std::nullopt;
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(pointer) - base_);
    if (bytes > capacityBytes_ - offset) return std::nullopt;
    return offset;
}

std::size_t Arena::usedBytes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return blocks_->map.usedBytes();
}

Result<std::unique_ptr<PeerArena>> PeerArena::map(UniqueFd fd) {
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (seals < 0) return Status::mismatch("peer's arena: not a memory file: " + textOf(errno));
    if ((seals & kSizeSeals) != kSizeSeals) {
        return Status::mismatch("peer's arena: its size is not sealed, seals " +
                                std::to_string(seals));
    }
    struct stat facts {};
    if (::fstat(fd.get(), &facts) != 0 || facts.st_size <= 0 ||
        static_cast<std::size_t>(facts.st_size) % pageBytes() != 0) {
        return Status::mismatch("peer's arena: size " + std::to_string(facts.st_size) +
                                " is not a number of pages");
    }
    const auto bytes = static_cast<std::size_t>(facts.st_size);
    const Result<std::byte*> base = mapShared(fd.get(), bytes);
    if (!base.ok()) return base.status().within("peer's arena");
    return std::unique_ptr<PeerArena>(new PeerArena(*base, bytes));
}

PeerArena::~PeerArena() {
    ::munmap(base_, capacityBytes_);
}

}  // namespace isthmus
