// What plans of an all-to-all keep to so that blocks may differ in size: see checkUnequalBlocks().
#include <gtest/gtest.h>

#include <iostream>

#include "comm/plan/builder.hpp"
#include "comm/proof/mutate.hpp"
#include "comm/proof/prove.hpp"
#include "tests/support/catalogue_plans.hpp"
#include "tests/support/layouts.hpp"

namespace isthmus::test {
namespace {

/// Calls use(entry, plans, layout) for every all-to-all and mapping on every layout.
template <typename Use>
void forEachExchange(int ranks, const Use& use) {
    for (const NamedLayout& named : layoutsOf(ranks)) {
        const Layout layout = Layout::of(named.nodeOfRank);
        for (const Algorithm& entry : catalogue()) {
            if (entry.collective != Collective::kAllToAll || !entry.fits(layout)) continue;
            for (const Mapping mapping : entry.mappings) {
                const std::vector<Mapping> mappings(named.nodeOfRank.size(), mapping);
                use(entry, plansOfEntry(entry, mappings, 0, named.nodeOfRank), named);
            }
        }
    }
}

Status checkAll(const std::vector<Plan>& plans, const std::vector<int>& nodeOfRank) {
    for (const Plan& plan : plans) ISTHMUS_TRY(checkUnequalBlocks(plan, nodeOfRank));
    return {};
}

TEST(UnequalBlocks, MayGoByEveryPlanThatSaysSo) {
    int plansChecked = 0;
    for (int ranks = 2; ranks <= 33; ++ranks) {
        forEachExchange(ranks,
                        [&](const Algorithm& entry, const auto& plans, const NamedLayout& named) {
                            const Status status = checkAll(plans, named.nodeOfRank);
                            EXPECT_TRUE(status.ok() || !entry.servesCounts)
                                << ranks << " ranks on " << named.name << ": " << status.what();
                            plansChecked += entry.servesCounts ? 1 : 0;
                        });
    }
    EXPECT_GT(plansChecked, 500);
}

TEST(UnequalBlocks, MayNotGoByPlansThatMoveBlocksOfOthers) {
    std::vector<std::string_view> refused;
    forEachExchange(6, [&](const Algorithm& entry, const auto& plans, const NamedLayout& named) {
        if (!entry.servesCounts && !checkAll(plans, named.nodeOfRank).ok())
            refused.push_back(entry.name);
    });
    for (const std::string_view name :
         {"bruck", "bruck4", "butterfly", "two_level_node_first", "two_level_rail_first"})
        EXPECT_NE(std::find(refused.begin(), refused.end(), name), refused.end()) << name;
}

// Where a peer's block lies is read from what the peer tells of the block for me: a plan that means
// another one would get the wrong bytes, and the wrong number of them.
TEST(UnequalBlocks, OfOthersAreCaughtInPeersMemory) {
    int made = 0;
    int proven = 0;
    std::mt19937_64 random(3);
    for (const int ranks : {3, 4, 6}) {
        forEachExchange(
            ranks, [&](const Algorithm& entry, const auto& plans, const NamedLayout& named) {
                if (!entry.servesCounts) return;
                for (const MutationSite& site : mutationSites(plans)) {
                    if (site.damage != Damage::kChunk || site.source < 0) continue;
                    const Step& step = plans[site.rank].steps[site.step];
                    if (step.sources[site.source][site.index].rank == site.rank) continue;
                    const auto mutant = mutated(plans, site, random);
                    if (!mutant) continue;
                    ++made;
                    EXPECT_FALSE(checkAll(*mutant, named.nodeOfRank).ok())
                        << entry.name << " on " << named.name << " rank " << site.rank << " step "
                        << site.step;
                    proven += proveBothModels(entry.collective, *mutant, named.nodeOfRank) ? 1 : 0;
                }
            });
    }
    std::cout << "mutants that read another block of a peer: " << made << ", caught all; by proof "
              << made - proven << "\n";
    EXPECT_EQ(proven, 0);
    EXPECT_GT(made, 100);
}

}  // namespace
}  // namespace isthmus::test
