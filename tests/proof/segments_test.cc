#include <gtest/gtest.h>

#include "comm/proof/prove.hpp"
#include "comm/proof/repeat.hpp"
#include "tests/support/mutant_study.hpp"
#include "tests/support/plan_examples.hpp"

namespace isthmus::test {
namespace {

TEST(Segments, OverlapWithoutCoordination) {
    struct Case {
        Author author;
        Collective collective;
        Mapping mapping;
        int chunks;
    };
    const Case cases[] = {
        {ringAllReduce, Collective::kAllReduce, Mapping::kNone, 4},
        {directAllReduce, Collective::kAllReduce, Mapping::kAll, 4},
        {stagedAllReduce, Collective::kAllReduce, Mapping::kShared, 4},
        {chainBroadcast, Collective::kBroadcast, Mapping::kNone, 1},
    };
    for (const Case& each : cases) {
        const auto plans =
            plansOf({each.collective, oneNode(4), each.chunks, each.mapping}, each.author);
        for (const int window : {1, 2, 3}) {
            const auto whole = repeat(plans, 5, window);

            const Proof proof = proveBothModels(each.collective, whole, oneNode(4));
            EXPECT_TRUE(proof) << nameOf(each.collective) << " window " << window << ": "
                               << proof.what;
            EXPECT_EQ(interpretOften(whole, 5, 6), "");
        }
    }
}

/// A rank that uses a slot again before its peers are done with it: nothing else would order them.
TEST(Segments, NeedTheWindow) {
    const auto plans =
        plansOf({Collective::kAllReduce, oneNode(3), 3, Mapping::kShared}, stagedAllReduce);
    auto whole = repeat(plans, 3, 2);
    const int steps = static_cast<int>(plans[1].steps.size());
    for (int step = 2 * steps; step < 3 * steps; ++step) {
        std::vector<int>& after = whole[1].steps[static_cast<std::size_t>(step)].after;
        std::erase_if(after, [&](int before) { return before < 2 * steps; });
    }
    EXPECT_FALSE(proveBothModels(Collective::kAllReduce, whole, oneNode(3)));
}

/// The inline form leaves its peers' slots without a word: a window would overwrite them.
TEST(Segments, AreNotForPlansWhoseSharedSlotsMustOutliveTheCall) {
    const auto plans =
        plansOf({Collective::kAllReduce, oneNode(3), 3, Mapping::kShared}, inlineAllReduce);
    EXPECT_TRUE(proveBothModels(Collective::kAllReduce, repeat(plans, 2, 2), oneNode(3)));
    EXPECT_FALSE(proveBothModels(Collective::kAllReduce, repeat(plans, 3, 1), oneNode(3)));
}

}  // namespace
}  // namespace isthmus::test
