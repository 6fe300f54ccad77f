#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/transport/rma/rma_device.hpp"

namespace isthmus {

/// The devices that this build and machine have, each also behind the strict one ("strict_...").
/// The first call says on standard output which are left out, and why.
const std::vector<std::string>& deviceKinds();
/// Those of them that keep their promises when a peer dies.
std::vector<std::string> enduringDeviceKinds();

/// A device of `kind`, strict, whose connections break at so many posts. Not among deviceKinds.
std::string droppingKind(const std::string& kind, int dropAfter);
/// Also of kinds that droppingKind made.
bool isDeviceKind(const std::string& kind);

/// `member`: which of the devices that will talk to each other; strict ones differ in seed and
/// credits. `failEvery`: as StrictOptions has it.
Result<std::unique_ptr<RmaDevice>> makeDevice(const std::string& kind, int member,
                                              int failEvery = 3);

}  // namespace isthmus
