#pragma once

#include <vector>

#include <isthmus/status.hpp>

#include "comm/bootstrap/socket.hpp"
#include "comm/communicator/exchanger.hpp"
#include "comm/communicator/runtime.hpp"
#include "comm/engine/membership.hpp"

namespace isthmus {

/// Finds out who the ranks of a communicator are, which of them share memory with this one (by
/// really sharing it), and how to reach the others. Collective; two exchanges of small blobs.
/// Errors: kTimeout (who is missing), kMismatch (options or versions differ, named), kPeerLost.
Result<MembershipConfig> formMembership(Runtime& runtime, Exchanger& exchanger, Rank me, int ranks,
                                        Deadline deadline);

/// Nodes from what each rank proved: ranks are of one node when each has mapped the other's memory.
/// Every rank gets the same answer from the same input, even if the proofs are not transitive.
std::vector<int> nodesFromProofs(const std::vector<std::vector<Rank>>& proven);

/// Room per rank in a lane's inline area beyond ISTHMUS_INLINE: slots are rounded up.
inline constexpr std::size_t kInlineSlack = 64;

}  // namespace isthmus
