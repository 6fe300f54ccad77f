#include "tests/unit/algorithm/wire.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "comm/plan/chunking.hpp"
#include "comm/plan/operand.hpp"
#include "tests/unit/algorithm/plan_sets.hpp"

namespace isthmus {

std::int64_t divisibleBlock(const Plan& plan) {
    std::int64_t elements = 1;
    for (const Fraction& cut : plan.chunking.cuts) elements = std::lcm(elements, cut.denominator);
    return elements;
}

std::int64_t elementsOf(const Plan& plan, const Slice& slice, std::int64_t blockElements) {
    std::int64_t total = 0;
    for (const Location& at : slice) {
        const auto slot = static_cast<std::size_t>(at.chunk);
        const int chunk = at.buffer == Buffer::kScratch  ? plan.scratch[slot].chunk
                          : at.buffer == Buffer::kShared ? plan.shared[slot].chunk
                                                         : Operand::of(plan).meaning(at).chunk;
        total += chunkOf(plan.chunking, chunk, blockElements).elements;
    }
    return total;
}

Wire wireOf(const std::vector<Plan>& plans, const Layout& layout) {
    Wire wire;
    wire.leavesNode.resize(layout.nodes.size());
    wire.entersNode.resize(layout.nodes.size());
    wire.signals.resize(layout.nodes.size());
    wire.leavesRank.resize(plans.size());
    wire.blockElements = divisibleBlock(plans.front());
    for (const Plan& plan : plans) {
        const auto from = static_cast<std::size_t>(layout.nodeOf(plan.me));
        for (const Step& step : plan.steps) {
            for (const Rank peer : step.peers) {
                const auto to = static_cast<std::size_t>(layout.nodeOf(peer));
                if (to == from) continue;
                if (step.verb == Verb::kSignal) ++wire.signals[from];
                if (step.verb != Verb::kSend) continue;
                const auto elements = elementsOf(plan, step.sources[0], wire.blockElements);
                wire.leavesNode[from] += elements;
                wire.entersNode[to] += elements;
                wire.leavesRank[static_cast<std::size_t>(plan.me)] += elements;
            }
        }
    }
    return wire;
}

Layout equalNodes(int nodes, int ranksOfNode) {
    std::vector<int> nodeOf;
    for (int rank = 0; rank < nodes * ranksOfNode; ++rank) nodeOf.push_back(rank / ranksOfNode);
    return Layout::of(nodeOf);
}

Wire wireOfEntry(Collective collective, std::string_view name, const Layout& layout) {
    const Algorithm* entry = findAlgorithm(collective, name);
    EXPECT_NE(entry, nullptr);
    return entry == nullptr ? Wire{} : wireOf(plansOf(*entry, layout, 0, Choice::kDirect), layout);
}

}  // namespace isthmus
