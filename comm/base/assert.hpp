#pragma once

#include <cstdio>
#include <cstdlib>

/// For our own mistakes only, never for what a user or the wire says. Active in release builds.
#define ISTHMUS_ASSERT(claim)                                                               \
    do {                                                                                    \
        if (!(claim)) [[unlikely]] {                                                        \
            std::fprintf(stderr, "isthmus: broken promise: %s (%s:%d)\n", #claim, __FILE__, \
                         __LINE__);                                                         \
            std::abort();                                                                   \
        }                                                                                   \
    } while (false)
