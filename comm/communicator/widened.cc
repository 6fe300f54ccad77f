#include "comm/communicator/widened.hpp"

#include <numeric>

#include "comm/communicator/together.hpp"
#include "comm/reduce/wide.hpp"

namespace isthmus {

namespace {

/// Elements of a buffer, and where this rank's result lies in one that holds the whole operand.
struct Sizes {
    std::size_t input = 0;
    std::size_t output = 0;
    std::size_t begin = 0;
};

Sizes sizesOf(const CallRequest& request, Rank me, int ranks) {
    const std::size_t uniform = request.counts.uniform;
    if (request.collective == Collective::kReduce)
        return {uniform, me == request.root ? uniform : 0, 0};
    if (request.collective == Collective::kAllReduce) return {uniform, uniform, 0};
    const auto& each = request.counts.each;
    const auto at = static_cast<std::size_t>(me);
    if (each.empty()) return {uniform * static_cast<std::size_t>(ranks), uniform, at * uniform};
    const auto mine = each.begin() + static_cast<std::ptrdiff_t>(at);
    return {std::accumulate(each.begin(), each.end(), std::size_t{0}), *mine,
            std::accumulate(each.begin(), mine, std::size_t{0})};
}

}  // namespace

bool Communicator::isWidened(const CallRequest& request, const CallOptions& options) const {
    const SelectorOptions& all = runtime_.selectorOptions();
    const bool isWished =
        options.roundsOnce || all.roundsOnce || options.isDeterministic || all.isDeterministic;
    if (!isWished || request.reduction != nullptr) return false;
    if (!roundsInHops(request.collective, request.type, request.op)) return false;
    // One node's own plans form every sum in one pass.
    if (layout_.nodes.size() > 1) return true;
    for (const auto& plan : request.prepared->byMapping) {
        if (plan == nullptr) continue;
        return !findAlgorithm(request.collective, plan->plan.algorithm)->isInRankOrder;
    }
    return false;
}

std::shared_ptr<Work> callWidened(Communicator& communicator, CallRequest request,
                                  const CallOptions& options, double factor) {
    const Sizes sizes = communicator.onlySums(request)
                            ? Sizes{}
                            : sizesOf(request, communicator.rank(), communicator.ranks());
    // Not zeroed: all of it is written. In place, as every call may be.
    const auto wide = std::shared_ptr<float[]>(new float[sizes.input]);
    widen(request.type, request.input, wide.get(), sizes.input, factor);
    const DataType type = request.type;
    std::byte* const target = request.output;
    request.type = DataType::kFloat32;
    request.isWidened = true;
    request.input = reinterpret_cast<const std::byte*>(wide.get());
    request.output = reinterpret_cast<std::byte*>(wide.get() + sizes.begin);
    request.prepared = nullptr;
    CallOptions how = options;
    how.isBlocking = false;
    auto work = together({communicator.call(std::move(request), how)}, [wide, sizes, type, target] {
        narrow(type, wide.get() + sizes.begin, target, sizes.output);
    });
    if (options.isBlocking) (void)communicator.wait(*work, options.patience).ok();
    return work;
}

}  // namespace isthmus
