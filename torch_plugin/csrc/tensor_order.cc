#include "torch_plugin/csrc/tensor_order.hpp"

#include <algorithm>
#include <utility>

#include "torch_plugin/csrc/staging.hpp"

namespace isthmus::glue {

TensorOrder::Spans TensorOrder::spansOf(const std::vector<at::Tensor>& tensors) {
    Spans spans;
    for (const at::Tensor& tensor : tensors) {
        if (tensor.device().is_cpu() || tensor.numel() == 0) continue;
        std::int64_t last = 0;  // the element that lies last; no stride is negative
        for (std::int64_t dimension = 0; dimension < tensor.dim(); ++dimension)
            last += (tensor.size(dimension) - 1) * tensor.stride(dimension);
        const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data_ptr());
        const auto bytes = static_cast<std::uintptr_t>(last + 1) * tensor.element_size();
        spans.push_back({tensor.device(), begin, begin + bytes});
    }
    return spans;
}

bool TensorOrder::meet(const Spans& some, const Spans& others) {
    return std::any_of(some.begin(), some.end(), [&](const Span& one) {
        return std::any_of(others.begin(), others.end(), [&](const Span& other) {
            return one.device == other.device && one.begin < other.end && other.begin < one.end;
        });
    });
}

// What an earlier call reads is copied before anything that comes later is written there: both are
// in the order of streams (Staging::store). Unless that call itself has to wait with its copy.
bool TensorOrder::mustFollow(const Use& later, const Use& earlier) {
    if (later.batch != 0 && later.batch == earlier.batch) return false;
    return meet(later.reads, earlier.writes) || meet(later.writes, earlier.writes) ||
           (earlier.isLate && meet(later.writes, earlier.reads));
}

std::vector<std::shared_ptr<Staging>> TensorOrder::add(const std::shared_ptr<Staging>& call,
                                                       const std::vector<at::Tensor>& writes,
                                                       std::uint64_t batch) {
    Use mine{call, spansOf(call->sources()), spansOf(writes), batch, false};
    std::vector<std::shared_ptr<Staging>> before;
    const std::lock_guard lock(mutex_);
    std::erase_if(uses_, [](const Use& use) {
        const auto earlier = use.call.lock();
        return !earlier || earlier->hasEnded();
    });
    for (const Use& earlier : uses_) {
        if (!mustFollow(mine, earlier)) continue;
        if (auto alive = earlier.call.lock()) before.push_back(std::move(alive));
    }
    mine.isLate = !before.empty();
    uses_.push_back(std::move(mine));
    return before;
}

}  // namespace isthmus::glue
