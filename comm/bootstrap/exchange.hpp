#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <isthmus/store.hpp>

#include "comm/bootstrap/job_key.hpp"
#include "comm/bootstrap/socket.hpp"

namespace isthmus {

/// All-gather of one small blob per rank through a Store: element r of the answer is what rank r
/// gave. Collective: every rank calls it once per `prefix`.
///
/// Rank 0 collects the blobs and publishes them as one value, or publishes what went wrong, so that
/// a job of n ranks asks the store for 2n values, not n * n, and all ranks end alike.
/// Errors: kTimeout names the ranks that are missing; kMismatch when two processes claim one rank
/// (both are named) or do not agree on the number of ranks; kInvalidArgument.
Result<std::vector<Bytes>> exchange(Store& store, std::string_view prefix, int rank, int ranks,
                                    const Bytes& mine, Deadline deadline);

/// Forgets what exchange() left under `prefix`. Only when no rank can still be in it.
Status eraseExchange(Store& store, std::string_view prefix, int ranks);

/// Rank 0 makes a random job key and gives it to all through `store`: as secret as the store is.
Result<JobKey> agreeOnJobKey(Store& store, std::string_view prefix, int rank, Deadline deadline);

/// "2, 5" or "0-3, 7": ranks as messages name them.
std::string rankList(const std::vector<int>& ranks);

}  // namespace isthmus
