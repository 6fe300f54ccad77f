#include "tests/large/pattern.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace isthmus::test {

namespace {

constexpr std::byte kMark{0xA5};

std::byte* reserve(std::size_t bytes) {
    void* const made = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) std::abort();
    return static_cast<std::byte*>(made);
}

std::size_t differenceIn(const std::byte* one, const std::byte* other, std::size_t bytes) {
    return static_cast<std::size_t>(std::mismatch(one, one + bytes, other).first - one);
}

}  // namespace

Pattern::Pattern(std::size_t bytes)
    : bytes_((bytes / kPeriod + 1) * kPeriod), base_(reserve(bytes_)) {
    const int fd = ::memfd_create("pattern", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, kPeriod) != 0) std::abort();
    std::mt19937_64 random(1);
    for (std::size_t at = 0; at < bytes_; at += kPeriod) {
        void* const period = ::mmap(base_ + at, kPeriod, PROT_READ | (at == 0 ? PROT_WRITE : 0),
                                    MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0);
        if (period == MAP_FAILED) std::abort();
        if (at > 0) continue;
        auto* const words = static_cast<std::uint64_t*>(period);
        std::generate_n(words, kPeriod / sizeof(*words), std::ref(random));
    }
    ::close(fd);
}

Pattern::~Pattern() {
    ::munmap(base_, bytes_);
}

std::optional<std::size_t> Pattern::firstDifference(std::span<const std::byte> memory,
                                                    std::size_t offset) const {
    // Always from the first periods, so that the caches serve one side.
    for (std::size_t at = 0; at < memory.size();) {
        const std::size_t place = (offset + at) % kPeriod;
        const std::size_t bytes = std::min(kPeriod - place, memory.size() - at);
        if (std::memcmp(memory.data() + at, base_ + place, bytes) != 0)
            return at + differenceIn(memory.data() + at, base_ + place, bytes);
        at += bytes;
    }
    return std::nullopt;
}

template <typename W>
std::optional<std::size_t> Pattern::firstDifferenceFromSum(std::span<const std::byte> memory,
                                                           std::size_t one,
                                                           std::size_t other) const {
    std::vector<W> sums(kPeriod / sizeof(W));
    const auto* const left = reinterpret_cast<const W*>(base_ + one % kPeriod);
    const auto* const right = reinterpret_cast<const W*>(base_ + other % kPeriod);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<W>(left[i] + right[i]);
    const auto* const wanted = reinterpret_cast<const std::byte*>(sums.data());
    for (std::size_t at = 0; at < memory.size(); at += kPeriod) {
        const std::size_t bytes = std::min(kPeriod, memory.size() - at);
        if (std::memcmp(memory.data() + at, wanted, bytes) != 0)
            return at + differenceIn(memory.data() + at, wanted, bytes);
    }
    return std::nullopt;
}

template std::optional<std::size_t> Pattern::firstDifferenceFromSum<std::uint8_t>(
    std::span<const std::byte>, std::size_t, std::size_t) const;
template std::optional<std::size_t> Pattern::firstDifferenceFromSum<std::uint64_t>(
    std::span<const std::byte>, std::size_t, std::size_t) const;

LargeBuffer::LargeBuffer(std::size_t bytes) : mapped_(bytes + 2 * kGuard), base_(reserve(mapped_)) {
    ::madvise(base_, mapped_, MADV_HUGEPAGE);  // a wish: where there are none it is only slower
    std::fill_n(base_, kGuard, kMark);
    guardAt(bytes);
}

LargeBuffer::~LargeBuffer() {
    ::munmap(base_, mapped_);
}

void LargeBuffer::guardAt(std::size_t bytes) {
    used_ = bytes;
    std::fill_n(data() + bytes, kGuard, kMark);
}

bool LargeBuffer::isIntact() const {
    const auto isMarked = [](const std::byte* from) {
        return std::all_of(from, from + kGuard, [](std::byte byte) { return byte == kMark; });
    };
    return isMarked(base_) && isMarked(base_ + kGuard + used_);
}

std::optional<std::string> missingMemory(std::size_t bytes) {
    std::FILE* const file = std::fopen("/proc/meminfo", "r");
    if (file == nullptr) return std::nullopt;
    char line[128];
    std::size_t kilobytes = 0;
    while (std::fgets(line, sizeof(line), file) != nullptr) {
        if (std::sscanf(line, "MemAvailable: %zu", &kilobytes) == 1) break;
    }
    std::fclose(file);
    const std::size_t available = kilobytes * 1024;
    if (available >= bytes) return std::nullopt;
    return std::to_string((bytes - available) >> 20) +
           " MiB of memory are missing: " + std::to_string(bytes >> 20) + " are needed, " +
           std::to_string(available >> 20) + " available";
}

}  // namespace isthmus::test
