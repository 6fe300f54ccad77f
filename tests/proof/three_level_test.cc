#include <gtest/gtest.h>

#include <iostream>

#include "comm/proof/prove.hpp"
#include "comm/proof/repeat.hpp"
#include "tests/support/catalogue_plans.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/mutant_study.hpp"

namespace isthmus::test {
namespace {

struct RackedLayout {
    std::string name;
    Layout layout;
    std::vector<int> nodeOfRank;
};

void addRacks(std::vector<RackedLayout>& all, const std::string& name,
              const std::vector<int>& nodeOfRank) {
    const Layout layout = Layout::of(nodeOfRank);
    const int nodes = static_cast<int>(layout.nodes.size());
    if (nodes < 3) return;
    std::vector<int> halves;
    std::vector<int> unequal;
    std::vector<int> dealt;
    std::vector<int> pairs;
    std::vector<int> rows;
    for (int node = 0; node < nodes; ++node) {
        halves.push_back(2 * node / nodes);
        unequal.push_back(node == nodes - 1 ? 2 : 3 * node < nodes ? 1 : 0);
        dealt.push_back(node % 2);
        pairs.push_back(node / 2);
        rows.push_back(node / 4);
    }
    const auto add = [&](const char* racks, std::vector<std::vector<int>> numbers) {
        Layout racked = layout;
        racked.racks = std::move(numbers);
        all.push_back({name + " in " + racks, std::move(racked), nodeOfRank});
    };
    add("halves", {halves});
    add("unequal racks", {unequal});
    add("racks dealt round", {dealt});
    if (nodes > 4) add("rows of racks of two", {pairs, rows});
}

/// The layouts of two levels, a node for each rank, nodes of two; each in racks of equal and
/// unequal sizes, round robin, and in rows of racks. Beyond 12 ranks the last two of them in halves
/// and in rows.
std::vector<RackedLayout> rackedLayouts(int ranks) {
    std::vector<RackedLayout> all;
    if (ranks <= 12) {
        for (const NamedLayout& named : layoutsOf(ranks))
            addRacks(all, named.name, named.nodeOfRank);
    }
    std::vector<int> alone;
    std::vector<int> twos;
    for (int rank = 0; rank < ranks; ++rank) {
        alone.push_back(rank);
        twos.push_back(rank / 2);
    }
    addRacks(all, "nodes of one", alone);
    addRacks(all, "nodes of two", twos);
    if (ranks > 12) {
        std::erase_if(all, [](const RackedLayout& each) {
            return each.name.find("halves") == std::string::npos &&
                   each.name.find("rows") == std::string::npos;
        });
    }
    return all;
}

/// Those that look at racks; of the rooted ones the order of nodes does.
bool looksAtRacks(const Algorithm& entry) {
    return entry.name.starts_with("three_level") || entry.name == "rack_first" ||
           entry.name == "two_level_chain" || entry.name == "two_level_double_tree" ||
           (entry.name == "chain" && hasRoot(entry.collective));
}

template <typename Use>
void forEachRacked(int most, const Use& use) {
    for (int ranks = 3; ranks <= most; ++ranks) {
        for (const RackedLayout& racked : rackedLayouts(ranks)) {
            for (const Algorithm& entry : catalogue()) {
                if (!looksAtRacks(entry) || !entry.fits(racked.layout)) continue;
                if (entry.name == "two_level_double_tree" && ranks > 9) continue;
                for (const Mapping mapping : entry.mappings) {
                    const std::vector<Mapping> mappings(racked.nodeOfRank.size(), mapping);
                    use(entry, plansOfEntry(entry, mappings, ranks / 2, racked.layout),
                        racked.nodeOfRank,
                        std::string(nameOf(entry.collective)) + " " + std::string(entry.name) +
                            " " + std::to_string(ranks) + " ranks, " + racked.name);
                }
            }
        }
    }
}

TEST(ThreeLevel, HoldsInRacksOfAllShapes) {
    int proofs = 0;
    std::int64_t steps = 0;
    forEachRacked(33, [&](const Algorithm& entry, const auto& plans, const std::vector<int>& nodes,
                          const std::string& title) {
        const Proof proof = proveBothModels(entry.collective, plans, nodes, true);
        EXPECT_TRUE(proof) << title << ": " << proof.what;
        ++proofs;
        steps += proof.steps;
    });
    std::cout << proofs << " proofs of " << steps << " steps\n";
    EXPECT_GT(proofs, 1000);
}

/// Nodes choose alone between direct and staged.
TEST(ThreeLevel, HoldsWhereEverySecondNodeStages) {
    for (const int ranks : {6, 8, 11}) {
        for (const RackedLayout& racked : rackedLayouts(ranks)) {
            for (const Algorithm& entry : catalogue()) {
                if (!entry.name.starts_with("three_level") || !entry.fits(racked.layout)) continue;
                std::vector<Mapping> mappings;
                for (const int node : racked.nodeOfRank) {
                    mappings.push_back(entry.mappings[static_cast<std::size_t>(node % 2)]);
                }
                const auto plans = plansOfEntry(entry, mappings, 0, racked.layout);
                const Proof proof = proveBothModels(entry.collective, plans, racked.nodeOfRank);
                EXPECT_TRUE(proof) << entry.name << " " << racked.name << ": " << proof.what;
            }
        }
    }
}

TEST(ThreeLevel, HoldsInSegmentsAndIsNotBrokenByTheInterpreter) {
    forEachRacked(6, [&](const Algorithm& entry, const auto& plans, const std::vector<int>& nodes,
                         const std::string& title) {
        EXPECT_EQ(interpretOften(plans, 5, 3), "") << title;
        if (plans.size() > 5) return;
        const Proof proof = proveBothModels(entry.collective, repeat(plans, 3, 2), nodes);
        EXPECT_TRUE(proof) << title << ": " << proof.what;
    });
}

TEST(ThreeLevel, LosesItsMutants) {
    MutantStudy all;
    std::uint64_t seed = 0;
    forEachRacked(6, [&](const Algorithm&, const auto& plans, const std::vector<int>& nodes,
                         const std::string&) { all += studyMutants(plans, nodes, ++seed, 1); });
    std::cout << all.text() << "\n";
    for (const std::string& hole : all.holes) ADD_FAILURE() << hole;
    EXPECT_EQ(all.sum().caught + all.sum().equal + all.sum().harmless, all.sum().total);
    EXPECT_GT(all.sum().caught, 500);
}

}  // namespace
}  // namespace isthmus::test
