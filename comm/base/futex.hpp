#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace isthmus {

/// Sleeps while `word` holds `seen`, at most `limit`; may wake early (futex(2),
/// FUTEX_WAIT_PRIVATE). std::atomic::wait has no time limit.
inline void futexWait(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                      std::chrono::nanoseconds limit) {
    const auto nanoseconds = std::max<std::int64_t>(limit.count(), 0);
    const timespec time{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
}

inline void futexWakeAll(const std::atomic<std::uint32_t>& word) {
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace isthmus
