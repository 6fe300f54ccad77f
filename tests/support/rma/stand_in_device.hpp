#pragma once

#include <memory>

#include "comm/transport/rma/rma_device.hpp"

namespace isthmus {

/// A card of memory and function calls, for devices of one process, each with a thread of its own:
/// messages wait at their receiver, 64 at most, and transfers copy. Keys are random, and whatever
/// lies outside a registration is refused. Destroying a device looks like the death of its process.
std::unique_ptr<RmaDevice> makeStandInDevice();

/// What all of them in this process have moved by transfers. Thread: any.
std::uint64_t standInTransferredBytes();

}  // namespace isthmus
