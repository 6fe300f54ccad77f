#pragma once

#include <isthmus/status.hpp>

#include "comm/engine/call.hpp"

namespace isthmus {

/// Says what is wrong with a call before anything is started: null buffers, root, operator on a
/// type, sizes that overflow, numbers of counts. `me` and `ranks` of the communicator.
Status checkCall(const CallRequest& call, Rank me, int ranks);
Status checkTransfer(const PointToPointRequest& transfer, Rank me, int ranks);

}  // namespace isthmus
