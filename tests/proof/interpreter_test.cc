
#include <gtest/gtest.h>

#include <iostream>

#include "comm/proof/prove.hpp"
#include "tests/support/mutant_study.hpp"
#include "tests/support/plan_examples.hpp"
#include "tests/support/random_plans.hpp"

namespace isthmus::test {
namespace {

struct Example {
    const char* name;
    Collective collective;
    Author author;
    Mapping mapping;
    bool isChunkEach;  // as many chunks as ranks
};

const Example kExamples[] = {
    {"ring", Collective::kAllReduce, ringAllReduce, Mapping::kNone, true},
    {"exchange", Collective::kAllReduce, exchangeAllReduce, Mapping::kNone, true},
    {"direct", Collective::kAllReduce, directAllReduce, Mapping::kAll, true},
    {"staged", Collective::kAllReduce, stagedAllReduce, Mapping::kShared, true},
    {"inline", Collective::kAllReduce, inlineAllReduce, Mapping::kShared, true},
    {"ring", Collective::kAllGather, ringAllGather, Mapping::kNone, false},
    {"direct", Collective::kAllToAll, directAllToAll, Mapping::kAll, false},
    {"chain", Collective::kBroadcast, chainBroadcast, Mapping::kNone, false},
    {"dissemination", Collective::kBarrier, disseminationBarrier, Mapping::kNone, false},
};

std::vector<Plan> plansOfExample(const Example& example, int ranks) {
    return plansOf({example.collective, oneNode(ranks), example.isChunkEach ? ranks : 1,
                    example.mapping, ranks - 1},
                   example.author);
}

TEST(Interpreter, FindsNothingInPlansThatHold) {
    for (const Example& example : kExamples) {
        for (const int ranks : {1, 2, 3, 5}) {
            const auto plans = plansOfExample(example, ranks);
            EXPECT_EQ(interpretOften(plans, 7, 60), "")
                << nameOf(example.collective) << " " << example.name << " " << ranks << " ranks";
        }
    }
}

TEST(Interpreter, SeesWhatIsBroken) {
    auto plans = plansOfExample(kExamples[2], 3);  // direct: signal, wait, reduce, ...
    plans[1].steps[2].after.clear();               // does not wait for the others
    EXPECT_NE(interpretOften(plans, 1, 60), "");
    plans = plansOfExample(kExamples[1], 3);
    for (Plan& plan : plans) {
        for (Step& step : plan.steps) step.completes = false;
    }
    EXPECT_NE(interpretOften(plans, 1, 3).find("wrong data"), std::string::npos);
    plans = plansOfExample(kExamples[7], 3);
    plans[0].steps.pop_back();
    EXPECT_NE(interpretOften(plans, 1, 1).find("unmatched"), std::string::npos);
}

TEST(Mutants, OfExamplesAreCaughtOrHarmless) {
    MutantStudy all;
    for (const Example& example : kExamples) {
        for (const int ranks : {2, 3, 4}) {
            all += studyMutants(plansOfExample(example, ranks), oneNode(ranks), 3, 40);
        }
    }
    std::cout << all.text() << "\n";
    for (const std::string& hole : all.holes) ADD_FAILURE() << hole;
    for (const Tally& tally : all.byDamage) EXPECT_GT(tally.caught, 0);
    EXPECT_GT(all.sum().total, 1000);
}

/// What the prover accepts the interpreter never breaks; so what it breaks the prover rejects.
TEST(RandomPlans, ProverAndInterpreterAgree) {
    int accepted = 0;
    int broken = 0;
    int rejectedOnly = 0;
    for (std::uint64_t seed = 0; seed < 800; ++seed) {
        const double carelessness = seed % 3 == 0 ? 0.0 : seed % 3 == 1 ? 0.05 : 0.15;
        const RandomCall call = randomCall(seed, carelessness);
        ASSERT_FALSE(call.plans.empty());
        const Proof proof = proveBothModels(call.collective, call.plans, call.nodeOfRank);
        const std::string what = interpretOften(call.plans, seed, 9);
        if (proof) {
            ++accepted;
            ASSERT_EQ(what, "") << "accepted, seed " << seed;
        } else if (!what.empty()) {
            ++broken;
        } else {
            ++rejectedOnly;
        }
    }
    std::cout << "random plans: accepted " << accepted << ", rejected and broken " << broken
              << ", rejected and not broken in 9 runs " << rejectedOnly << "\n";
    EXPECT_GT(accepted, 200);
    EXPECT_GT(broken, 100);
}

}  // namespace
}  // namespace isthmus::test
