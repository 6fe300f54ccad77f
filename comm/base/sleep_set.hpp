#pragma once

#include <chrono>

#include "comm/base/unique_fd.hpp"

namespace isthmus {

/// What a thread of this process sleeps on when there is nothing to do: every descriptor that can
/// bring news, and a wake() of our own. Level-triggered epoll(7). It only wakes; who reads the
/// descriptors is another matter. add, remove, wantWrite and wake: any thread. wait: any number of
/// threads; all of them wake.
class SleepSet {
public:
    SleepSet();

    void add(int fd);  ///< readable (or closed) wakes
    void remove(int fd);
    void wantWrite(int fd, bool wanted);  ///< room to write wakes too

    /// Ends every current wait, or the next one.
    void wake();

    /// True when something happened before `limit` passed.
    bool wait(std::chrono::nanoseconds limit);

private:
    UniqueFd epoll_;
    UniqueFd event_;
};

}  // namespace isthmus
