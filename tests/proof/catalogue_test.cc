#include "comm/algorithm/catalogue.hpp"

#include <gtest/gtest.h>

#include <iostream>

#include "comm/plan/print.hpp"
#include "comm/proof/prove.hpp"
#include "tests/support/catalogue_plans.hpp"
#include "tests/support/layouts.hpp"

namespace isthmus::test {
namespace {

constexpr int kMostRanks = 33;

/// Every entry of one collective, for every count of ranks and layout it says it is for.
class Catalogue : public testing::TestWithParam<Collective> {
protected:
    void proveAll(int ranks) {
        seen_ = {};
        for (const NamedLayout& named : layoutsOf(ranks)) {
            const Layout layout = Layout::of(named.nodeOfRank);
            for (const Algorithm& entry : catalogue()) {
                if (entry.collective != GetParam() || !entry.fits(layout)) continue;
                for (const Mapping mapping : entry.mappings) proveEntry(entry, mapping, named);
                if (entry.usesLevels) proveMixture(entry, named);
            }
        }
    }

    void prove(const Algorithm& entry, const std::vector<Mapping>& mappings, Rank root,
               const NamedLayout& named) {
        const auto plans = plansOfEntry(entry, mappings, root, named.nodeOfRank);
        if (plans.empty()) return;
        if (!seen_.isNew(plans)) {
            ++known_;
            return;
        }
        const Proof proof = proveBothModels(entry.collective, plans, named.nodeOfRank, true);
        ++proofs_;
        steps_ += proof.steps;
        EXPECT_TRUE(proof) << nameOf(entry.collective) << " " << entry.name << " mapped "
                           << nameOf(mappings.front()) << " " << plans.size() << " ranks on "
                           << named.name << " root " << root << ": " << proof.what;
        if (entry.isInPlaceSafe) {
            EXPECT_TRUE(plans.front().inPlaceSafe) << entry.name;
        }
    }

    void proveEntry(const Algorithm& entry, Mapping mapping, const NamedLayout& named) {
        const int ranks = static_cast<int>(named.nodeOfRank.size());
        const std::vector<Mapping> mappings(named.nodeOfRank.size(), mapping);
        prove(entry, mappings, 0, named);
        if (hasRoot(entry.collective) && ranks > 1) prove(entry, mappings, 2 * ranks / 3, named);
    }

    /// Nodes choose alone between direct and staged: every second node stages.
    void proveMixture(const Algorithm& entry, const NamedLayout& named) {
        if (entry.mappings.size() < 2) return;
        std::vector<Mapping> mappings;
        for (const int node : named.nodeOfRank) {
            mappings.push_back(entry.mappings[static_cast<std::size_t>(node % 2)]);
        }
        prove(entry, mappings, 0, named);
    }

    SeenPlans seen_;
    int proofs_ = 0;
    int known_ = 0;  ///< equal to plans that were proven on another layout
    std::int64_t steps_ = 0;
};

TEST_P(Catalogue, HoldsOnEveryLayout) {
    for (int ranks = 1; ranks <= kMostRanks && !HasFailure(); ++ranks) proveAll(ranks);
    std::cout << nameOf(GetParam()) << ": " << proofs_ << " proofs of " << steps_ << " steps, "
              << known_ << " more of equal plans\n";
    EXPECT_GT(proofs_, kMostRanks);
}

INSTANTIATE_TEST_SUITE_P(All, Catalogue,
                         testing::Values(Collective::kAllReduce, Collective::kAllGather,
                                         Collective::kReduceScatter, Collective::kAllToAll,
                                         Collective::kBroadcast, Collective::kReduce,
                                         Collective::kGather, Collective::kScatter,
                                         Collective::kBarrier),
                         [](const auto& each) { return std::string(nameOf(each.param)); });

}  // namespace
}  // namespace isthmus::test
