#include "comm/memory/arena.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/memory/child.hpp"

namespace isthmus {
namespace {

constexpr std::size_t kMebi = std::size_t(1) << 20;

std::unique_ptr<Arena> makeArena(std::size_t bytes) {
    auto arena = Arena::create(bytes);
    EXPECT_TRUE(arena.ok()) << arena.status().what();
    return arena.ok() ? std::move(*arena) : nullptr;
}

/// Memory that the arena's file really has.
std::size_t residentBytes(const Arena& arena) {
    struct stat facts {};
    EXPECT_EQ(::fstat(arena.fd(), &facts), 0);
    return static_cast<std::size_t>(facts.st_blocks) * 512;
}

std::byte* take(Arena& arena, std::size_t bytes, std::size_t alignment = 64) {
    Result<void*> block = arena.allocate(bytes, alignment);
    EXPECT_TRUE(block.ok()) << block.status().what();
    return block.ok() ? static_cast<std::byte*>(*block) : nullptr;
}

TEST(Arena, HandsOutZeroedAlignedWritableMemory) {
    const auto arena = makeArena(16 * kMebi);
    std::byte* const block = take(*arena, 3 * kMebi + 5, 4096);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 4096, 0u);
    EXPECT_EQ(std::count(block, block + 3 * kMebi + 5, std::byte(0)),
              static_cast<std::ptrdiff_t>(3 * kMebi + 5));
    std::memset(block, 1, 3 * kMebi + 5);
    EXPECT_EQ(arena->offsetOf(block, 3 * kMebi + 5), block - arena->base());
    arena->free(block);
    EXPECT_EQ(arena->usedBytes(), 0u);
}

TEST(Arena, GivesZeroBytesAnAddressOfTheirOwn) {
    const auto arena = makeArena(kMebi);
    std::byte* const first = take(*arena, 0);
    std::byte* const second = take(*arena, 0);
    EXPECT_NE(first, second);
    EXPECT_TRUE(arena->owns(first));
    arena->free(first);
    arena->free(second);
    arena->free(nullptr);
}

TEST(Arena, CostsOnlyWhatIsInUseAndGivesLargeBlocksBack) {
    const auto arena = makeArena(Arena::defaultCapacityBytes());
    EXPECT_EQ(residentBytes(*arena), 0u);
    std::byte* const small = take(*arena, 100);
    EXPECT_EQ(residentBytes(*arena), 65536u);
    std::byte* const large = take(*arena, 8 * kMebi);
    EXPECT_GE(residentBytes(*arena), 8 * kMebi);
    small[0] = std::byte(9);
    large[0] = std::byte(9);
    arena->free(large);
    EXPECT_EQ(residentBytes(*arena), 65536u);
    EXPECT_EQ(small[0], std::byte(9)) << "the neighbour's page was given back";
    EXPECT_EQ(take(*arena, 8 * kMebi)[65536], std::byte(0)) << "pages were not given back";
}

TEST(Arena, SaysWhatItHasWhenItIsFull) {
    const auto arena = makeArena(kMebi);
    take(*arena, kMebi / 2);
    const Result<void*> more = arena->allocate(kMebi / 2 + 1);
    ASSERT_EQ(more.status().code(), Status::Code::kResource);
    EXPECT_EQ(more.status().what(),
              "arena: wanted 524289 bytes, in use 524288, capacity 1048576: no free block is large "
              "enough");
    EXPECT_EQ(arena->allocate(~std::size_t(0)).status().code(), Status::Code::kResource);
    EXPECT_TRUE(arena->allocate(kMebi / 2).ok());
}

TEST(Arena, RefusesAlignmentsThatItCannotKeep) {
    const auto arena = makeArena(kMebi);
    EXPECT_EQ(arena->allocate(1, 96).status().code(), Status::Code::kInvalidArgument);
    EXPECT_EQ(arena->allocate(1, 1 << 16).status().code(), Status::Code::kUnsupported);
}

TEST(Arena, KnowsWhatLiesInside) {
    const auto arena = makeArena(kMebi);
    const std::byte outside{};
    EXPECT_EQ(arena->offsetOf(arena->base() + 64, kMebi - 64), 64u);
    EXPECT_FALSE(arena->offsetOf(arena->base() + 64, kMebi - 63));
    EXPECT_FALSE(arena->offsetOf(arena->base(), ~std::size_t(0)));
    EXPECT_FALSE(arena->offsetOf(&outside, 1));
    EXPECT_FALSE(arena->owns(arena->base() + kMebi));
}

TEST(Arena, PopulatesPagesWhenAsked) {
    const auto arena = makeArena(8 * kMebi);
    const Result<void*> block = arena->allocatePopulated(kMebi + 1, 4096);
    ASSERT_TRUE(block.ok());
    constexpr std::size_t kPages = kMebi / 4096 + 1;
    std::vector<unsigned char> isResident(kPages);
    ASSERT_EQ(::mincore(*block, kMebi + 1, isResident.data()), 0);
    EXPECT_EQ(std::count_if(isResident.begin(), isResident.end(), [](auto b) { return b & 1; }),
              static_cast<std::ptrdiff_t>(kPages));
}

TEST(Arena, CannotBeResizedByAnybody) {
    const auto arena = makeArena(kMebi);
    EXPECT_EQ(::ftruncate(arena->fd(), 0), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(::ftruncate(arena->fd(), 2 * kMebi), -1);
    EXPECT_EQ(::fcntl(arena->fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

TEST(Arena, ShrinksToWhatTheSystemGrants) {
    EXPECT_EQ(test::runInChild([] {
                  const rlimit limit{64 * kMebi, 64 * kMebi};
                  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
                  const auto arena = Arena::create(256 * kMebi);
                  if (!arena.ok()) return 2;
                  return (*arena)->capacityBytes() == 64 * kMebi ? 0 : 3;
              }),
              0);
    EXPECT_EQ(test::runInChild([] {
                  std::size_t pages = 0;  // sanitizers have terabytes already
                  std::ifstream("/proc/self/statm") >> pages;
                  const rlim_t most =
                      pages * static_cast<std::size_t>(::getpagesize()) + (std::size_t(3) << 38);
                  const rlimit limit{most, most};
                  if (::setrlimit(RLIMIT_AS, &limit) != 0) return 1;
                  const auto arena = Arena::create(std::size_t(1) << 41);
                  if (!arena.ok()) return 2;
                  return (*arena)->capacityBytes() == std::size_t(1) << 39 ? 0 : 3;
              }),
              0);
}

/// From now on fallocate(2) of this process fails as on a full file system, except when it punches
/// holes (mode 3).
bool makeFallocateFail() {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{std::size(program), program};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// https://github.com/NVIDIA/nccl/issues/342: a bus error at first use instead of an error here.
TEST(Arena, Boot08ReportsMemoryThatCannotBeReserved) {
    EXPECT_EQ(test::runInChild([] {
                  const auto arena = Arena::create(16 * kMebi);
                  if (!arena.ok()) return 1;
                  const Result<void*> neighbour = (*arena)->allocate(1000);
                  if (!neighbour.ok()) return 1;
                  std::memset(*neighbour, 7, 1000);
                  if (!makeFallocateFail()) return 2;
                  const Result<void*> block = (*arena)->allocate(4 * kMebi);
                  if (block.status().code() != Status::Code::kResource) return 3;
                  if (block.status().what().find("No space left") == std::string::npos) return 4;
                  if ((*arena)->usedBytes() != 1024) return 5;
                  if (!(*arena)->allocate(1000).ok()) return 6;  // its pages are there already
                  return static_cast<unsigned char*>(*neighbour)[999] == 7 ? 0 : 7;
              }),
              0);
}

TEST(Arena, LeavesNoDescriptorAndNoFileBehind) {
    const auto fds = test::openFds();
    for (int i = 0; i < 100; ++i) {
        const auto arena = makeArena(64 * kMebi);
        take(*arena, kMebi);
        auto peer = PeerArena::map(UniqueFd(::dup(arena->fd())));
        EXPECT_TRUE(peer.ok());
    }
    EXPECT_EQ(test::openFds(), fds);
}

TEST(Arena, IsPrivateInForkedChildren) {
    const auto arena = makeArena(4 * kMebi);
    std::byte* const block = take(*arena, kMebi);
    std::memset(block, 1, kMebi);
    EXPECT_EQ(test::runInChild([&] {
                  const bool sees =
                      std::count(block, block + kMebi, std::byte(1)) == std::ptrdiff_t{kMebi};
                  std::memset(block, 2, kMebi);
                  const bool wrote =
                      std::count(block, block + kMebi, std::byte(2)) == std::ptrdiff_t{kMebi};
                  return sees && wrote ? 0 : 1;
              }),
              0);
    EXPECT_EQ(std::count(block, block + kMebi, std::byte(1)), std::ptrdiff_t{kMebi});
    std::memset(block, 3, kMebi);  // the parent's is still the one that peers map
    auto peer = PeerArena::map(UniqueFd(::fcntl(arena->fd(), F_DUPFD_CLOEXEC, 0)));
    ASSERT_TRUE(peer.ok());
    EXPECT_EQ((*peer)->base()[block - arena->base()], std::byte(3));
}

TEST(Arena, ForkedChildrenOfAnArenaThatIsGoneTouchNothing) {
    std::byte* base = nullptr;
    {
        const auto arena = makeArena(4 * kMebi);
        base = arena->base();
    }
    void* const other = ::mmap(base, 4096, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_EQ(other, base);
    *base = std::byte(7);
    EXPECT_EQ(test::runInChild([&] { return *base == std::byte(7) ? 0 : 1; }), 0);
    ::munmap(other, 4096);
}

TEST(PeerArena, SeesTheSameBytes) {
    const auto arena = makeArena(4 * kMebi);
    const auto peer = PeerArena::map(UniqueFd(::dup(arena->fd())));
    ASSERT_TRUE(peer.ok()) << peer.status().what();
    EXPECT_EQ((*peer)->capacityBytes(), arena->capacityBytes());
    std::byte* const block = take(*arena, 64);
    block[3] = std::byte(42);
    EXPECT_EQ((*peer)->base()[*arena->offsetOf(block, 64) + 3], std::byte(42));
}

TEST(PeerArena, MapsOnlySealedMemoryFiles) {
    const auto codeOf = [](int fd) { return PeerArena::map(UniqueFd(fd)).status().code(); };
    EXPECT_EQ(codeOf(::open("/dev/null", O_RDWR)), Status::Code::kMismatch);
    const int open = ::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(open, 4096), 0);
    EXPECT_EQ(codeOf(open), Status::Code::kMismatch);
    const int empty = ::memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(::fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    EXPECT_EQ(codeOf(empty), Status::Code::kMismatch);
    EXPECT_EQ(codeOf(-1), Status::Code::kMismatch);
}

}  // namespace
}  // namespace isthmus
