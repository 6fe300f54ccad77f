#pragma once

#include "comm/transport/ofi/ofi_fabric.hpp"

namespace isthmus {

struct OfiChoice {
    OfiInfo info;
    OfiVisibility visibility = OfiVisibility::kDelivered;
};

/// What libfabric offers that can do what a device needs. kUnsupported, kConfiguration.
Result<OfiChoice> chooseOfi(const OfiLibrary& library, const OfiOptions& options);

/// The names of all providers that could be chosen, best first, each once.
std::vector<std::string> ofiProviders(const OfiLibrary& library);

}  // namespace isthmus
