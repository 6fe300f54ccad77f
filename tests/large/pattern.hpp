#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <isthmus/isthmus.h>

namespace isthmus::test {

/// Gigabytes of read-only numbers in the memory of one period of them: a file that is mapped again
/// and again. The period is a prime number of pages, so what is off by any power of two differs.
class Pattern {
public:
    explicit Pattern(std::size_t bytes);
    ~Pattern();
    Pattern(const Pattern&) = delete;
    Pattern& operator=(const Pattern&) = delete;

    const std::byte* at(std::size_t offset) const { return base_ + offset; }

    /// Where `memory` first differs from what lies at `offset`.
    std::optional<std::size_t> firstDifference(std::span<const std::byte> memory,
                                               std::size_t offset) const;
    /// The same, from the sum of two offsets, of elements of W (which wrap).
    template <typename W>
    std::optional<std::size_t> firstDifferenceFromSum(std::span<const std::byte> memory,
                                                      std::size_t one, std::size_t other) const;

    static constexpr std::size_t kPeriod = 4099 * 4096;

private:
    std::size_t bytes_;
    std::byte* base_;
};

/// Ordinary memory with 64 marked bytes on both sides, in huge pages where the system has them.
class LargeBuffer {
public:
    explicit LargeBuffer(std::size_t bytes);
    ~LargeBuffer();
    LargeBuffer(const LargeBuffer&) = delete;
    LargeBuffer& operator=(const LargeBuffer&) = delete;

    std::byte* data() { return base_ + kGuard; }
    /// Marks the bytes behind the first `bytes`.
    void guardAt(std::size_t bytes);
    bool isIntact() const;

private:
    static constexpr std::size_t kGuard = 64;
    std::size_t mapped_;
    std::byte* base_;
    std::size_t used_ = 0;
};

/// What is missing of `bytes` of free memory, in words; nothing when there is enough.
std::optional<std::string> missingMemory(std::size_t bytes);

}  // namespace isthmus::test
