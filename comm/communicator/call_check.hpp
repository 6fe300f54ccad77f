#pragma once

#include <isthmus/status.hpp>

#include "comm/engine/call.hpp"

namespace isthmus {

/// Says what is wrong with a call before anything is started: null buffers, root, operator on a
/// type, sizes that overflow, numbers of counts. `me` and `ranks` of the communicator. A rank that
/// only adds has no buffers to look at.
enum class Buffers : std::uint8_t { kUsed, kIgnored };
Status checkCall(const CallRequest& call, Rank me, int ranks, Buffers buffers = Buffers::kUsed);
Status checkTransfer(const PointToPointRequest& transfer, Rank me, int ranks);

}  // namespace isthmus
