#include "comm/selector/plan_cache.hpp"

#include <algorithm>
#include <numeric>

#include "comm/base/digest.hpp"

namespace isthmus {

namespace {

// Shapes that are remembered; a job that varies its sizes without end must not grow without end.
constexpr std::size_t kMostShapes = 1024;

std::uint64_t elementsOf(const CallRequest& call, std::size_t ranks) {
    const BlockCounts& counts = call.counts;
    if (!counts.each.empty()) {
        return std::accumulate(counts.each.begin(), counts.each.end(), std::uint64_t{0});
    }
    const bool isWhole = call.collective == Collective::kAllReduce ||
                         call.collective == Collective::kReduce ||
                         call.collective == Collective::kBroadcast;
    return isWhole ? counts.uniform : counts.uniform * ranks;
}

std::uint64_t digestOfCounts(const BlockCounts& counts) {
    if (counts.each.empty()) return 0;
    Digest digest;
    for (const std::size_t count : counts.each) digest.add(count);
    return digest.value();
}

}  // namespace

PlanCache::PlanCache(Layout layout, Rank me, SelectorOptions options)
    : layout_(std::move(layout)), me_(me), options_(std::move(options)) {
    positionInNode_.assign(layout_.ranks(), -1);
    const auto& node = layout_.nodes[layout_.nodeOf(me)];
    nodeRanks_ = static_cast<int>(node.size());
    for (int i = 0; i < nodeRanks_; ++i) positionInNode_[node[i]] = i;
}

Result<std::shared_ptr<const CompiledPlan>> PlanCache::planOf(const PlanKey& key) {
    if (const auto it = plans_.find(key); it != plans_.end()) return it->second;
    PlanRequest request;
    request.collective = std::get<0>(key);
    request.algorithm = std::get<1>(key);
    request.root = std::get<2>(key);
    request.mapping = std::get<3>(key);
    request.me = me_;
    Result<Plan> plan = makePlan(layout_, request);
    if (!plan.ok()) return plan.status();
    CompiledPlan compiling = CompiledPlan::of(std::move(*plan), positionInNode_, nodeRanks_);
    if (std::get<4>(key)) compiling.meetsAt = -1;
    auto compiled = std::make_shared<const CompiledPlan>(std::move(compiling));
    plans_.emplace(key, compiled);
    return std::shared_ptr<const CompiledPlan>(compiled);
}

Result<std::shared_ptr<const PreparedPlans>> PlanCache::prepare(const CallRequest& call,
                                                                const std::string& algorithm) {
    CallShape shape;
    shape.collective = call.collective;
    shape.type = call.type;
    shape.root = hasRoot(call.collective) ? call.root : 0;
    shape.bytes = elementsOf(call, positionInNode_.size()) * bytesOf(call.type);
    shape.hasCounts = !call.counts.each.empty() || !call.counts.sent.empty();
    const std::uint64_t countsDigest = digestOfCounts(call.counts) + (shape.hasCounts ? 1 : 0);
    shape.isInRankOrder =
        call.reduction != nullptr
            ? call.isDeterministic || !call.reduction->isCommutative
            : call.isDeterministic && dependsOnOrder(call.collective, call.type, call.op);
    const ShapeKey key{shape.collective, shape.type,          shape.bytes, shape.root,
                       countsDigest,     shape.isInRankOrder, algorithm};
    if (latest_ != nullptr && key == latestKey_) return latest_;
    latestKey_ = key;
    if (const auto it = shapes_.find(key); it != shapes_.end()) return latest_ = it->second;
    latest_.reset();
    auto prepared = make(shape, algorithm, countsDigest);
    if (!prepared.ok()) return prepared;
    if (shapes_.size() >= kMostShapes) shapes_.clear();
    shapes_.emplace(key, *prepared);
    latest_ = *prepared;
    return prepared;
}

Result<std::shared_ptr<const PreparedPlans>> PlanCache::make(const CallShape& shape,
                                                             const std::string& algorithm,
                                                             std::uint64_t countsDigest) {
    SelectorOptions options = options_;
    options.algorithm = algorithm;
    const Result<Selection> selection = select(shape, layout_, options);
    if (!selection.ok()) return selection.status();
    const Algorithm* entry = findAlgorithm(shape.collective, selection->algorithm);
    auto prepared = std::make_shared<PreparedPlans>();
    prepared->segments = selection->segments;
    prepared->segmentsWhenMapped = selection->segmentsWhenMapped;
    prepared->window = selection->window;
    prepared->pieceBytes = selection->pieceBytes;
    prepared->digest = Digest()
                           .add(selection->algorithm)
                           .add(prepared->segments)
                           .add(prepared->segmentsWhenMapped)
                           .add(prepared->window)
                           .add(selection->stagesOnce)
                           .add(prepared->pieceBytes)
                           .add(countsDigest)
                           .value();
    prepared->algorithm = static_cast<std::uint8_t>(entry - catalogue().data() + 1);
    const auto& mappings = entry->mappings;
    const bool hasDirect =
        std::find(mappings.begin(), mappings.end(), Mapping::kAll) != mappings.end();
    for (const Mapping mapping : mappings) {
        // Alone on the node nothing is ever staged.
        if (nodeRanks_ == 1 && hasDirect && mapping != Mapping::kAll) continue;
        if (mapping == Mapping::kRead && (!options_.canRead || selection->stagesOnce)) continue;
        const bool stagesOnce = mapping == Mapping::kShared && selection->stagesOnce;
        auto plan = planOf({shape.collective, stagesOnce ? "inline" : selection->algorithm,
                            shape.root, mapping, stagesOnce});
        if (!plan.ok()) return plan.status();
        prepared->byMapping[static_cast<int>(mapping)] = *plan;
    }
    return std::shared_ptr<const PreparedPlans>(std::move(prepared));
}

}  // namespace isthmus
