#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator/communicator.hpp"

namespace isthmus {

/// One of the tensors of a coalesced call.
struct Tensor {
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::size_t count = 0;  ///< as in the plain call
};

/// Starts one plain call.
using StartOne = std::function<std::shared_ptr<Work>(CallRequest, const CallOptions&)>;

/// A call over many tensors: `like` says everything but their buffers and counts. Small tensors
/// travel together in calls of packed copies (of none where they lie one after the other), large
/// ones alone; which, follows from the counts and is the same on every rank.
class CoalescedCall {
public:
    CoalescedCall(CallRequest like, std::vector<Tensor> tensors)
        : like_(std::move(like)), tensors_(std::move(tensors)) {}

    /// What is wrong with any of them, before any starts.
    Status prepare(Communicator& communicator, const CallOptions& options) const;
    std::shared_ptr<Work> start(Communicator& communicator, const CallOptions& options,
                                const StartOne& startOne) const;

    /// The tensors of each plain call, by place in the list.
    std::vector<std::vector<std::size_t>> parcels(int ranks) const;

private:
    CallRequest callOf(const Tensor& tensor) const;

    CallRequest like_;
    std::vector<Tensor> tensors_;
};

}  // namespace isthmus
