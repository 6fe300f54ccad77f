#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <isthmus/status.hpp>

#include "comm/base/unique_fd.hpp"

namespace isthmus {

/// The most descriptors that one message carries: what we need, well below the kernel's 253.
inline constexpr std::size_t kMaxPassedFds = 16;

/// Sends `payload` (1 byte to 4 KiB) and copies of `fds` over the UNIX-domain socket `socket` as
/// one message (unix(7), SCM_RIGHTS). False: the socket is not blocking and full, nothing was sent.
/// kPeerLost when nobody is there; no signal is raised.
Result<bool> sendFds(int socket, std::span<const std::byte> payload, std::span<const int> fds);

/// What one receive got.
struct PassedFds {
    std::size_t payloadBytes = 0;  ///< 0: the peer has closed
    std::vector<UniqueFd> fds;     ///< close-on-exec
};

/// Receives up to payload.size() bytes into `payload` and the descriptors that came with them.
/// None: the socket is not blocking and empty. kMismatch when descriptors were cut off: more than
/// kMaxPassedFds, or this process is out of them; those that came are closed. kPeerLost on a reset.
Result<std::optional<PassedFds>> receiveFds(int socket, std::span<std::byte> payload);

}  // namespace isthmus
