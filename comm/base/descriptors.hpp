#pragma once

#include <string>
#include <string_view>

#include "comm/base/unique_fd.hpp"

namespace isthmus {

/// The system's text for `error`; with the limit and how to raise it when descriptors ran out.
std::string causeOf(int error);

/// One warning a process that descriptors ran out and what came of it. Any thread.
void warnOutOfDescriptors(std::string_view what);

/// A descriptor in reserve for whoever accepts connections: without one left, the listener would
/// stay readable and its owner busy.
class SpareDescriptor {
public:
    SpareDescriptor();

    /// After accept4(2) at `listener` failed with `error`. When descriptors have run out, turns the
    /// caller away that waits there and warns. True: there may be more callers.
    /// Without a reserve it waits a moment: the listener stays readable.
    bool turnAway(int listener, int error);

    /// Takes the reserve again where it was lost: another thread may have been given the descriptor
    /// in the moment in which a caller was turned away. For after a good accept4(2).
    void refill();

    bool isThere() const { return fd_.isOpen(); }

private:
    UniqueFd fd_;
};

}  // namespace isthmus
