#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include <isthmus/isthmus.h>
#include <isthmus/options.hpp>
#include <isthmus/status.hpp>

namespace isthmus {
inline namespace v1 {

/// Gives memory of the Arena back; for std::unique_ptr.
struct ArenaDeleter {
    void operator()(void* memory) const noexcept { (void)isthmusMemFree(memory); }
};

/// Owner of an array in the Arena.
template <typename T>
using ArenaArray = std::unique_ptr<T[], ArenaDeleter>;

/// Memory that the ranks of this node map, so that calls on it copy nothing inside a node.
class Arena {
public:
    /// Takes `elements` values of T, zero-filled, 64-byte aligned.
    /// Errors: kResource (the Arena is full), kInvalidArgument (more bytes than a process
    /// addresses).
    template <typename T>
    requires std::is_trivially_copyable_v<T>
    static Result<ArenaArray<T>> allocate(std::size_t elements) {
        static_assert(alignof(T) <= 64, "the Arena aligns to 64 bytes");
        if (elements > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
            return Status::invalidArgument("memory for " + std::to_string(elements) +
                                           " elements of " + std::to_string(sizeof(T)) +
                                           " bytes is more than a process addresses");
        }
        void* memory = nullptr;
        ISTHMUS_TRY(detail::statusOf(isthmusMemAlloc(&memory, elements * sizeof(T))));
        return ArenaArray<T>(static_cast<T*>(memory));
    }
};

/// Puts standard containers into the Arena: `std::vector<float, ArenaAllocator<float>>`.
/// A container has no other way to hear that memory ran out: allocate() throws std::bad_alloc, or
/// ends the process where exceptions are off.
template <typename T>
class ArenaAllocator {
public:
    using value_type = T;

    ArenaAllocator() = default;
    template <typename U>
    ArenaAllocator(const ArenaAllocator<U>&) noexcept {}  // NOLINT: as allocators convert

    T* allocate(std::size_t elements) {
        static_assert(alignof(T) <= 64, "the Arena aligns to 64 bytes");
        void* memory = nullptr;
        if (elements > std::numeric_limits<std::size_t>::max() / sizeof(T) ||
            isthmusMemAlloc(&memory, elements * sizeof(T)) != isthmusSuccess) {
#if defined(__cpp_exceptions)
            throw std::bad_alloc();
#else
            std::abort();
#endif
        }
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t) noexcept {
        (void)isthmusMemFree(memory);
    }

    template <typename U>
    bool operator==(const ArenaAllocator<U>&) const noexcept {
        return true;
    }
};

/// A vector in the Arena.
template <typename T>
using ArenaVector = std::vector<T, ArenaAllocator<T>>;

}  // namespace v1
}  // namespace isthmus
