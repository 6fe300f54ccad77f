#include "comm/algorithm/chunks.hpp"

#include <algorithm>
#include <numeric>

namespace isthmus {

Chunks run(int first, int chunks) {
    Chunks numbers(static_cast<std::size_t>(chunks));
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
}

Chunks allBlocks(const PlanBuilder& plan, int blocks) {
    return run(0, blocks * plan.chunksPerBlock());
}

Chunks block(const PlanBuilder& plan, int block) {
    return run(block * plan.chunksPerBlock(), plan.chunksPerBlock());
}

Chunks chunksOf(const PlanBuilder& plan, std::span<const Rank> blocks) {
    Chunks all;
    for (const Rank rank : blocks) {
        const Chunks chunks = block(plan, rank);
        all.insert(all.end(), chunks.begin(), chunks.end());
    }
    return all;
}

Pieces blocksOf(const PlanBuilder& plan, const Group& group) {
    Pieces pieces;
    pieces.reserve(group.ranks().size());
    for (const Rank rank : group.ranks()) pieces.push_back(block(plan, rank));
    return pieces;
}

Pieces singles(int pieces) {
    Pieces result;
    result.reserve(static_cast<std::size_t>(pieces));
    for (int piece = 0; piece < pieces; ++piece) result.push_back({piece});
    return result;
}

Place outputOfMyBlock(const PlanBuilder& plan) {
    return [mine = plan.at(plan.me()), perBlock = plan.chunksPerBlock()](const Chunks& chunks) {
        Chunks within;
        within.reserve(chunks.size());
        for (const int chunk : chunks) within.push_back(chunk % perBlock);
        return mine.output(within);
    };
}

Place lyingAt(Chunks chunks, Slice slice) {
    return [chunks = std::move(chunks), slice = std::move(slice)](const Chunks& wanted) {
        Slice found;
        found.reserve(wanted.size());
        for (const int chunk : wanted) {
            const auto index = std::find(chunks.begin(), chunks.end(), chunk) - chunks.begin();
            found.push_back(slice[static_cast<std::size_t>(index)]);
        }
        return found;
    };
}

Slice scratchLike(PlanBuilder& plan, const Slice& slice) {
    return plan.grabScratch(plan.like(slice));
}

void combine(PlanBuilder& plan, const Slice& target, const std::vector<Slice>& sources,
             Completes completes) {
    if (sources.size() == 1) {
        plan.copy(target, sources.front(), completes);
    } else {
        plan.reduce(target, sources, completes);
    }
}

Slice joined(const std::vector<Slice>& slices) {
    Slice all;
    for (const Slice& slice : slices) all.insert(all.end(), slice.begin(), slice.end());
    return all;
}

}  // namespace isthmus
