#include <gtest/gtest.h>

#include <iostream>

#include "comm/proof/prove.hpp"
#include "comm/proof/repeat.hpp"
#include "tests/support/catalogue_plans.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/mutant_study.hpp"

namespace isthmus::test {
namespace {

struct Choice {
    std::string name;
    std::vector<Rank> summing;
};

/// Ranks that only add: the last third, every second one, all of the last node.
std::vector<Choice> choicesFor(const Layout& layout) {
    std::vector<Choice> choices = {{"last third", {}}, {"every second", {}}};
    for (Rank rank = 0; rank < layout.ranks(); ++rank) {
        if (3 * rank >= 2 * layout.ranks()) choices[0].summing.push_back(rank);
        if (rank % 2 == 0) choices[1].summing.push_back(rank);
    }
    if (layout.nodes.size() > 1) choices.push_back({"last node", layout.nodes.back()});
    return choices;
}

/// Calls use(entry, plans, layout, title) for counts of ranks up to `most` on every layout. Beyond
/// 12 ranks the layouts are those of nodes in blocks, and of the choices the first: what differs
/// there is more of the same.
template <typename Use>
void forEachSumming(int most, const Use& use) {
    for (int ranks = 2; ranks <= most; ++ranks) {
        for (const NamedLayout& named : layoutsOf(ranks)) {
            const bool isBlocks = named.name == "2 nodes" || named.name == "3+2+1" ||
                                  named.name == "4 nodes" || named.name == "8+1+1+1";
            if (ranks > 12 && !isBlocks) continue;
            Layout layout = Layout::of(named.nodeOfRank);
            for (const Choice& choice : choicesFor(layout)) {
                if (ranks > 12 && choice.name != "last third") continue;
                layout.summing = choice.summing;
                for (const char* name : {"summing", "two_level_summing"}) {
                    const Algorithm* entry = findAlgorithm(Collective::kAllReduce, name);
                    ASSERT_NE(entry, nullptr);
                    if (!entry->fits(layout)) continue;
                    const std::vector<Mapping> mappings(named.nodeOfRank.size(),
                                                        entry->mappings.front());
                    use(*entry, plansOfEntry(*entry, mappings, 0, layout), named,
                        std::string(name) + " " + std::to_string(ranks) + " ranks on " +
                            named.name + ", adding: " + choice.name);
                }
            }
        }
    }
}

TEST(Summing, HoldsOnEveryLayout) {
    int proofs = 0;
    forEachSumming(33, [&](const Algorithm& entry, const auto& plans, const NamedLayout& named,
                           const std::string& title) {
        const Proof proof = proveBothModels(entry.collective, plans, named.nodeOfRank, true);
        EXPECT_TRUE(proof) << title << ": " << proof.what;
        ++proofs;
    });
    std::cout << proofs << " proofs\n";
    EXPECT_GT(proofs, 300);
}

TEST(Summing, HoldsInSegmentsAndIsNotBrokenByTheInterpreter) {
    forEachSumming(6, [&](const Algorithm& entry, const auto& plans, const NamedLayout& named,
                          const std::string& title) {
        const Proof proof =
            proveBothModels(entry.collective, repeat(plans, 3, 2), named.nodeOfRank);
        EXPECT_TRUE(proof) << title << ": " << proof.what;
        EXPECT_EQ(interpretOften(plans, 5, 6), "") << title;
    });
}

TEST(Summing, LosesItsMutants) {
    MutantStudy all;
    std::uint64_t seed = 0;
    forEachSumming(
        6, [&](const Algorithm&, const auto& plans, const NamedLayout& named, const std::string&) {
            all += studyMutants(plans, named.nodeOfRank, ++seed, 2);
        });
    std::cout << all.text() << "\n";
    for (const std::string& hole : all.holes) ADD_FAILURE() << hole;
    EXPECT_EQ(all.sum().caught + all.sum().equal + all.sum().harmless, all.sum().total);
    EXPECT_GT(all.sum().caught, 200);
}

/// A plan that adds a rank without data, or leaves a rank with data out, is another one.
TEST(Summing, IsProvenForTheRanksThatHaveData) {
    Layout layout = Layout::of({0, 1, 2});
    layout.summing = {1};
    const Algorithm* entry = findAlgorithm(Collective::kAllReduce, "summing");
    ASSERT_NE(entry, nullptr);
    auto plans = plansOfEntry(*entry, std::vector<Mapping>(3, Mapping::kNone), 0, layout);
    const std::vector<int> nodes = {0, 1, 2};
    EXPECT_TRUE(proveBothModels(entry->collective, plans, nodes));
    for (Plan& plan : plans) plan.summing = {};
    const Proof everybody = proveBothModels(entry->collective, plans, nodes);
    EXPECT_NE(everybody.what.find("every contributor"), std::string::npos) << everybody.what;
    plans = plansOfEntry(*entry, std::vector<Mapping>(3, Mapping::kNone), 0, layout);
    plans[2].summing = {2};
    EXPECT_NE(proveBothModels(entry->collective, plans, nodes).what.find("another call"),
              std::string::npos);
}

}  // namespace
}  // namespace isthmus::test
