#pragma once

#include <chrono>

namespace isthmus::test {

/// Does a sanitizer that keeps books about memory watch over this program? What it takes says
/// nothing about ours then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized = __has_feature(address_sanitizer) ||
                                     __has_feature(thread_sanitizer) ||
                                     __has_feature(memory_sanitizer);
#else
inline constexpr bool kIsSanitized = false;
#endif

/// How long what a test waits for may take; only what never happens takes all of it.
inline constexpr std::chrono::seconds kPatience(kIsSanitized ? 60 : 10);

}  // namespace isthmus::test
