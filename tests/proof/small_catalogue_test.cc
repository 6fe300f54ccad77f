#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "comm/plan/print.hpp"
#include "comm/proof/prove.hpp"
#include "comm/proof/repeat.hpp"
#include "tests/support/catalogue_plans.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/mutant_study.hpp"

namespace isthmus::test {
namespace {

/// Calls use(entry, plans, layout) for every entry and mapping on every layout of few ranks.
template <typename Use>
void forEachSmall(std::span<const int> rankCounts, const Use& use) {
    for (const int ranks : rankCounts) {
        SeenPlans seen;
        for (const NamedLayout& named : layoutsOf(ranks)) {
            const Layout layout = Layout::of(named.nodeOfRank);
            for (const Algorithm& entry : catalogue()) {
                if (!entry.fits(layout)) continue;
                for (const Mapping mapping : entry.mappings) {
                    const std::vector<Mapping> mappings(named.nodeOfRank.size(), mapping);
                    const auto plans = plansOfEntry(entry, mappings, ranks - 1, named.nodeOfRank);
                    if (seen.isNew(plans)) use(entry, plans, named);
                }
            }
        }
    }
}

std::string titleOf(const std::vector<Plan>& plans, const NamedLayout& named) {
    std::ostringstream title;
    title << nameOf(plans.front().collective) << " " << plans.front().algorithm << " mapped "
          << nameOf(plans.front().mapping) << " " << plans.size() << " ranks on " << named.name;
    return title.str();
}

TEST(SmallCatalogue, IsNotBrokenByTheInterpreter) {
    const int counts[] = {1, 2, 3, 6};
    forEachSmall(counts, [](const Algorithm&, const auto& plans, const NamedLayout& named) {
        EXPECT_EQ(interpretOften(plans, 11, 6), "") << titleOf(plans, named);
    });
}

/// Segments of one call overlap in a window without any word between the ranks.
TEST(SmallCatalogue, HoldsInSegments) {
    const int counts[] = {2, 3, 6};
    int proofs = 0;
    forEachSmall(counts, [&](const Algorithm& entry, const auto& plans, const NamedLayout& named) {
        if (plans.front().sharedOutlivesCall) return;  // one segment only
        const auto whole = repeat(plans, 3, 2);
        const Proof proof = proveBothModels(entry.collective, whole, named.nodeOfRank);
        EXPECT_TRUE(proof) << titleOf(plans, named) << ": " << proof.what;
        ++proofs;
    });
    EXPECT_GT(proofs, 200);
}

TEST(SmallCatalogue, LosesItsMutants) {
    const int counts[] = {3, 4, 6};
    MutantStudy all;
    std::uint64_t seed = 0;
    forEachSmall(counts, [&](const Algorithm&, const auto& plans, const NamedLayout& named) {
        all += studyMutants(plans, named.nodeOfRank, ++seed, 3);
    });
    std::cout << all.text() << "\n";
    for (const std::string& hole : all.holes) ADD_FAILURE() << hole;
    EXPECT_EQ(all.sum().caught + all.sum().equal + all.sum().harmless, all.sum().total);
    for (const Tally& tally : all.byDamage) EXPECT_GT(tally.caught, 100);
}

/// Nodes that own 0, 1, 2, ... parts: only the widths of chunks differ from those of an exchange.
TEST(Owners, HoldForUnequalShares) {
    const Algorithm* entry = findAlgorithm(Collective::kAllReduce, "two_level_owners");
    ASSERT_NE(entry, nullptr);
    MutantStudy all;
    for (int ranks = 2; ranks <= 33; ++ranks) {
        for (const NamedLayout& named : layoutsOf(ranks)) {
            Layout layout = Layout::of(named.nodeOfRank);
            const bool isChosen = named.name == "2 nodes" || named.name == "3+2+1";
            if (!isChosen || layout.nodes.size() < 2) continue;
            for (int node = 0; node < static_cast<int>(layout.nodes.size()); ++node) {
                layout.shares.push_back(node);
            }
            const Mapping mapping = ranks % 2 == 0 ? Mapping::kAll : Mapping::kShared;
            const std::vector<Mapping> mappings(named.nodeOfRank.size(), mapping);
            const auto plans = plansOfEntry(*entry, mappings, 0, layout);
            const Proof proof = proveBothModels(entry->collective, plans, named.nodeOfRank, true);
            EXPECT_TRUE(proof) << titleOf(plans, named) << ": " << proof.what;
            if (ranks > 6) continue;
            EXPECT_EQ(interpretOften(plans, 11, 6), "") << titleOf(plans, named);
            all += studyMutants(plans, named.nodeOfRank, static_cast<std::uint64_t>(ranks), 3);
        }
    }
    std::cout << all.text() << "\n";
    for (const std::string& hole : all.holes) ADD_FAILURE() << hole;
    EXPECT_GT(all.sum().caught, 100);
}

/// Ranks that run in place copy first and send the same messages as those that do not.
TEST(PairwiseAllToAll, LetsEachRankChooseAlone) {
    const Algorithm* plain = findAlgorithm(Collective::kAllToAll, "pairwise");
    const Algorithm* copied = findAlgorithm(Collective::kAllToAll, "pairwise_copied");
    ASSERT_TRUE(plain != nullptr && copied != nullptr);
    for (const int ranks : {2, 3, 7}) {
        std::vector<int> nodes;
        for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank);
        const std::vector<Mapping> mappings(nodes.size(), Mapping::kNone);
        auto plans = plansOfEntry(*plain, mappings, 0, nodes);
        const auto others = plansOfEntry(*copied, mappings, 0, nodes);
        for (std::size_t rank = 0; rank < plans.size(); rank += 2) plans[rank] = others[rank];
        EXPECT_TRUE(plans[0].inPlaceSafe);
        EXPECT_FALSE(plans[1].inPlaceSafe);
        const Proof proof = proveBothModels(Collective::kAllToAll, plans, nodes);
        EXPECT_TRUE(proof) << ranks << " ranks: " << proof.what;
    }
}

}  // namespace
}  // namespace isthmus::test
