#pragma once

#include <cstddef>

namespace isthmus {

/// What a forked child writes into a shared mapping would change its parent's memory. A mapping
/// that is registered here becomes private in the child (pthread_atfork(3)): the same bytes at the
/// same addresses, copied when written. Pages that the child has not written yet still show what
/// the parent writes later. Thread: any.
class ForkGuard {
public:
    struct Mapping {
        std::byte* base = nullptr;
        std::size_t bytes = 0;
        int fd = -1;  ///< stays open while registered
    };

    static void add(const Mapping& mapping);
    static void remove(const std::byte* base);
};

}  // namespace isthmus
