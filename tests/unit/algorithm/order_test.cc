#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "tests/unit/algorithm/plan_runner.hpp"
#include "tests/unit/algorithm/plan_sets.hpp"

namespace isthmus {
namespace {

/// Whether every element of every result is ((input 0 + input 1) + input 2) + ...
bool foldsInRankOrder(const Algorithm& entry, const std::vector<Plan>& plans, Rank root,
                      bool isInPlace) {
    PlanRunner runner(plans, isInPlace, 3);
    const int ranks = static_cast<int>(plans.size());
    const int perBlock = plans.front().chunking.chunksPerBlock();
    const bool isScattered = entry.collective == Collective::kReduceScatter;
    for (Rank rank = 0; rank < ranks; ++rank) {
        for (int chunk = 0; chunk < (isScattered ? ranks : 1) * perBlock; ++chunk) {
            runner.setInput(rank, chunk, 1);
        }
    }
    EXPECT_TRUE(runner.run());
    std::vector<Rank> wanted(plans.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    for (Rank rank = 0; rank < ranks; ++rank) {
        if (entry.collective == Collective::kReduce && rank != root) continue;
        for (int chunk = 0; chunk < perBlock; ++chunk) {
            if (runner.foldOf(rank, chunk) != wanted) return false;
        }
    }
    return true;
}

bool foldsOnEveryLayout(const Algorithm& entry) {
    bool isFold = true;
    int tried = 0;
    for (const Layout& layout : testLayouts()) {
        if (!entry.fits(layout)) continue;
        for (Rank root = 0; root < (hasRoot(entry.collective) ? layout.ranks() : 1); ++root) {
            for (const Choice choice : choicesOf(entry)) {
                const std::vector<Plan> plans = plansOf(entry, layout, root, choice);
                isFold &= foldsInRankOrder(entry, plans, root, false);
                isFold &= foldsInRankOrder(entry, plans, root, true);
                ++tried;
            }
        }
    }
    return isFold && tried > 0;  // layouts that say what each node owns are not among them
}

TEST(Order, IsThatOfTheRanksWhereAnEntrySaysSoAndNowhereElse) {
    std::multiset<std::string_view> ordered;
    for (const Algorithm& entry : catalogue()) {
        if (!reduces(entry.collective)) {
            EXPECT_FALSE(entry.isInRankOrder) << entry.name;
            continue;
        }
        if (entry.name == "summing") continue;  // its layouts are those of summing_test.cc
        EXPECT_EQ(foldsOnEveryLayout(entry), entry.isInRankOrder)
            << nameOf(entry.collective) << " " << entry.name;
        if (entry.isInRankOrder) ordered.insert(entry.name);
    }
    for (const std::string_view name : {"direct", "inline", "two_level_ordered"}) {
        EXPECT_EQ(ordered.count(name), 3u) << name;
    }
}

}  // namespace
}  // namespace isthmus
