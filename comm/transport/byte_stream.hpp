#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include <isthmus/status.hpp>

namespace isthmus {

/// What one attempt to move bytes did. No bytes and no failure: try again later.
struct Moved {
    std::size_t bytes = 0;
    bool isEnd = false;  ///< the other side closed and everything before that was read
    Status failure;
};

inline std::size_t totalOf(std::span<const iovec> pieces) {
    std::size_t total = 0;
    for (const iovec& piece : pieces) total += piece.iov_len;
    return total;
}

/// The two halves of a connection. Never block.
class OutStream {
public:
    virtual ~OutStream() = default;
    virtual Moved writeSome(std::span<const iovec> pieces) = 0;
};

class InStream {
public:
    virtual ~InStream() = default;
    virtual Moved readSome(std::span<const iovec> pieces) = 0;
};

}  // namespace isthmus
