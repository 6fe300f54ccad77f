#include "tools/cli/bench_uneven.hpp"

#include <algorithm>

namespace isthmus::cli {
namespace {

std::size_t blockOf(std::uint64_t evenElements, Rank from, Rank to, int ranks) {
    const auto all = static_cast<std::uint64_t>(ranks);
    return evenElements * (2 * (static_cast<std::uint64_t>(from + to) % all) + 1) / all;
}

}  // namespace

UnevenBlocks UnevenBlocks::of(std::uint64_t evenElements, Rank rank, int ranks) {
    UnevenBlocks blocks;
    for (Rank other = 0; other < ranks; ++other) {
        blocks.counts.push_back(blockOf(evenElements, rank, other, ranks));
        blocks.offsets.push_back(blocks.total);
        blocks.total += blocks.counts.back();
    }
    return blocks;
}

std::uint64_t unevenBound(std::uint64_t evenElements, const Layout& layout) {
    std::uint64_t most = 0;
    for (const auto& node : layout.nodes) {
        std::uint64_t crossing = 0;  // as many come in as go out: blocks are the same both ways
        for (const Rank inside : node) {
            for (Rank other = 0; other < layout.ranks(); ++other) {
                if (std::find(node.begin(), node.end(), other) == node.end())
                    crossing += blockOf(evenElements, inside, other, layout.ranks());
            }
        }
        most = std::max(most, crossing);
    }
    return most;
}

}  // namespace isthmus::cli
