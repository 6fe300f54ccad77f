#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace isthmus {

/// The first line of a file of sysfs, procfs or a cgroup; nothing when it cannot be read.
std::optional<std::string> readLine(const std::string& path);

/// The whole number that a file's first line begins with.
std::optional<std::int64_t> readNumber(const std::string& path);

}  // namespace isthmus
