#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <isthmus/types.hpp>

namespace isthmus::conformance {

/// The value that rank `rank` gives at `index`: small integers, exact in every type and in every
/// sum of a few ranks, different for neighbours.
inline std::int64_t valueOf(int rank, std::size_t index) {
    return static_cast<std::int64_t>((index * 7 + static_cast<std::size_t>(rank) * 3) % 5);
}

/// Guarded memory: 64 bytes of 0xA5 before and after the part in use.
class GuardedBuffer {
public:
    GuardedBuffer(std::size_t bytes, std::byte fill)
        : bytes_(bytes), own_(bytes + 2 * kGuard, kMark) {
        base_ = own_.data();
        std::fill(data(), data() + bytes, fill);
    }
    /// In memory that the caller brings (an arena), of bytes + 128.
    GuardedBuffer(std::byte* memory, std::size_t bytes, std::byte fill)
        : bytes_(bytes), base_(memory) {
        std::fill(base_, base_ + bytes + 2 * kGuard, kMark);
        std::fill(data(), data() + bytes, fill);
    }

    std::byte* data() { return base_ + kGuard; }
    std::size_t bytes() const { return bytes_; }
    bool isIntact() const {
        for (std::size_t i = 0; i < kGuard; ++i) {
            if (base_[i] != kMark || base_[kGuard + bytes_ + i] != kMark) return false;
        }
        return true;
    }

    static constexpr std::size_t kGuard = 64;

private:
    static constexpr std::byte kMark{0xA5};
    std::size_t bytes_;
    std::vector<std::byte> own_;
    std::byte* base_ = nullptr;
};

}  // namespace isthmus::conformance
