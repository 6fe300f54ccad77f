#pragma once

#include <cstdint>
#include <string>

namespace isthmus {

/// Who listens at a TCP port of this network namespace: "process 4711 (python3)", or nothing where
/// /proc does not tell (proc(5): the descriptors of other users' processes are not readable).
std::string portHolder(std::uint16_t port);

}  // namespace isthmus
