#pragma once

#include <memory>

#include "comm/transport/rma/rma_device.hpp"

namespace isthmus {

struct StrictOptions {
    std::uint64_t seed = 1;
    /// Posts and transfers to one peer that are under way at once: 1 to 4.
    int credits = 2;
    /// Anything is held back for up to so many calls of progress.
    int longestDelay = 6;
    /// Every n-th registration fails; 0: none.
    int failEvery = 3;
    /// The connection to a peer breaks at so many posts and transfers to it; 0: never. What is held
    /// then is lost, whatever may have overtaken it.
    int dropAfter = 0;
};

/// The device inside, as unpleasant as the contract allows: messages and transfers overtake each
/// other, are late, find no credit, and registrations fail. Transfers happen as late as they
/// complete, so who takes memory back too early is found out. What the device inside would let
/// pass, local memory that is not registered, completes with kMismatch.
std::unique_ptr<RmaDevice> makeStrictDevice(std::unique_ptr<RmaDevice> inside,
                                            const StrictOptions& options);

}  // namespace isthmus
