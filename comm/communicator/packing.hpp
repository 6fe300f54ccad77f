#pragma once

#include <memory>
#include <vector>

#include "comm/communicator/communicator.hpp"

namespace isthmus {

/// Where the caller of a v-form keeps each block, in elements. Empty: packed in rank order.
struct Displacements {
    std::vector<std::size_t> input;
    std::vector<std::size_t> output;
};

/// Starts a v-form. Blocks that do not lie packed in rank order go through a packed copy, so that
/// plans know one form only; the gaps of the output are not touched.
std::shared_ptr<Work> callWithDisplacements(Communicator& communicator, CallRequest&& request,
                                            const CallOptions& options,
                                            const Displacements& displacements);

/// Starts a sum of inputs that are multiplied by `factor` first, in a copy (an all-reduce: in its
/// output). Ranks may have different factors.
std::shared_ptr<Work> callPremultiplied(Communicator& communicator, CallRequest request,
                                        const CallOptions& options, double factor);

}  // namespace isthmus
