#include <gtest/gtest.h>

#include "tests/unit/algorithm/plan_runner.hpp"
#include "tests/unit/algorithm/plan_sets.hpp"

namespace isthmus {
namespace {

/// Different for every (rank, chunk), and sums of different sets of ranks differ.
std::int64_t valueOf(Rank rank, int chunk) {
    return (std::int64_t{1} << (2 * rank)) * 1000 + chunk;
}

struct World {
    const Algorithm& entry;
    int ranks;
    Rank root;
    int perBlock;

    bool sendsInput(Rank rank) const {
        const bool isFromRoot =
            entry.collective == Collective::kBroadcast || entry.collective == Collective::kScatter;
        return rank == root || !isFromRoot;
    }

    int inputBlocks() const {
        const bool isMany = entry.collective == Collective::kReduceScatter ||
                            entry.collective == Collective::kAllToAll ||
                            entry.collective == Collective::kScatter;
        return entry.collective == Collective::kBarrier ? 0 : isMany ? ranks : 1;
    }

    int outputBlocks(Rank rank) const {
        switch (entry.collective) {
        case Collective::kBarrier:
            return 0;
        case Collective::kAllGather:
        case Collective::kAllToAll:
            return ranks;
        case Collective::kGather:
            return rank == root ? ranks : 0;
        case Collective::kReduce:
            return rank == root ? 1 : 0;
        default:
            return 1;
        }
    }

    std::int64_t sum(int chunk) const {
        std::int64_t total = 0;
        for (Rank rank = 0; rank < ranks; ++rank) total += valueOf(rank, chunk);
        return total;
    }

    std::int64_t expected(Rank rank, int chunk) const {
        const int block = chunk / perBlock;
        const int within = chunk % perBlock;
        switch (entry.collective) {
        case Collective::kAllReduce:
        case Collective::kReduce:
            return sum(chunk);
        case Collective::kReduceScatter:
            return sum(rank * perBlock + chunk);
        case Collective::kAllGather:
        case Collective::kGather:
            return valueOf(block, within);
        case Collective::kAllToAll:
            return valueOf(block, rank * perBlock + within);
        case Collective::kScatter:
            return valueOf(root, rank * perBlock + chunk);
        default:
            return valueOf(root, chunk);
        }
    }
};

void expectRightValues(const World& world, const std::vector<Plan>& plans, bool isInPlace,
                       unsigned seed) {
    PlanRunner runner(plans, isInPlace, seed);
    for (Rank rank = 0; rank < world.ranks; ++rank) {
        if (!world.sendsInput(rank)) continue;
        for (int chunk = 0; chunk < world.inputBlocks() * world.perBlock; ++chunk) {
            runner.setInput(rank, chunk, valueOf(rank, chunk));
        }
    }
    ASSERT_TRUE(runner.run());
    for (Rank rank = 0; rank < world.ranks; ++rank) {
        for (int chunk = 0; chunk < world.outputBlocks(rank) * world.perBlock; ++chunk) {
            ASSERT_EQ(runner.output(rank, chunk), world.expected(rank, chunk))
                << "rank " << rank << " chunk " << chunk;
            ASSERT_EQ(runner.scaled(rank, chunk), reduces(world.entry.collective) ? 1 : 0)
                << "rank " << rank << " chunk " << chunk;
        }
    }
}

void tryEntry(const Algorithm& entry, const Layout& layout, Rank root) {
    for (const Choice choice : choicesOf(entry)) {
        const std::vector<Plan> plans = plansOf(entry, layout, root, choice);
        ASSERT_EQ(plans.size(), static_cast<std::size_t>(layout.ranks()));
        const int perBlock = plans.front().chunking.chunksPerBlock();
        const World world{entry, layout.ranks(), root, perBlock};
        bool mayRunInPlace = true;
        for (const Plan& plan : plans) mayRunInPlace = mayRunInPlace && plan.inPlaceSafe;
        EXPECT_TRUE(mayRunInPlace || !entry.isInPlaceSafe);
        expectRightValues(world, plans, false, 1);
        if (mayRunInPlace) expectRightValues(world, plans, true, 2);
    }
}

TEST(Catalogue, EveryEntryGivesTheRightValuesInAnyOrderInAndOutOfPlace) {
    int tried = 0;
    for (const Algorithm& entry : catalogue()) {
        for (const Layout& layout : testLayouts()) {
            if (!entry.fits(layout)) continue;
            for (Rank root = 0; root < layout.ranks(); root += 2) {
                SCOPED_TRACE(textOf(entry, layout, root));
                tryEntry(entry, layout, root);
                ++tried;
                if (HasFatalFailure()) return;
                if (!hasRoot(entry.collective)) break;
            }
        }
    }
    EXPECT_GT(tried, 300);
}

}  // namespace
}  // namespace isthmus
