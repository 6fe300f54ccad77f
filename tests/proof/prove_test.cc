#include "comm/proof/prove.hpp"

#include <gtest/gtest.h>

#include "comm/plan/edges.hpp"
#include "tests/support/plan_examples.hpp"

namespace isthmus::test {
namespace {

TEST(RingAllReduce, LeavesEveryContributionOnceInEveryChunk) {
    for (int ranks = 1; ranks <= 33; ++ranks) {
        const auto plans = plansOf({Collective::kAllReduce, oneNode(ranks), ranks}, ringAllReduce);
        const Proof proof = proveBothModels(Collective::kAllReduce, plans, oneNode(ranks));
        EXPECT_TRUE(proof) << ranks << " ranks: " << proof.what;
        if (ranks > 1) {
            EXPECT_EQ(proof.steps, ranks * 5 * (ranks - 1));
        }
    }
}

struct Example {
    const char* name;
    Collective collective;
    Author author;
    Mapping mapping;
    bool isChunkEach;  // as many chunks as ranks
};

const Example kExamples[] = {
    {"exchange", Collective::kAllReduce, exchangeAllReduce, Mapping::kNone, true},
    {"direct", Collective::kAllReduce, directAllReduce, Mapping::kAll, true},
    {"staged", Collective::kAllReduce, stagedAllReduce, Mapping::kShared, true},
    {"inline", Collective::kAllReduce, inlineAllReduce, Mapping::kShared, true},
    {"ring", Collective::kAllGather, ringAllGather, Mapping::kNone, false},
    {"direct", Collective::kAllToAll, directAllToAll, Mapping::kAll, false},
    {"chain", Collective::kBroadcast, chainBroadcast, Mapping::kNone, false},
    {"dissemination", Collective::kBarrier, disseminationBarrier, Mapping::kNone, false},
};

TEST(Prove, HoldsForExamples) {
    for (const Example& example : kExamples) {
        for (int ranks = 1; ranks <= 17; ++ranks) {
            const auto plans =
                plansOf({example.collective, oneNode(ranks), example.isChunkEach ? ranks : 1,
                         example.mapping, ranks / 2},
                        example.author);
            const Proof proof = proveBothModels(example.collective, plans, oneNode(ranks));
            EXPECT_TRUE(proof) << nameOf(example.collective) << " " << example.name << " " << ranks
                               << " ranks: " << proof.what;
        }
    }
}

/// A plan, one thing broken in it, and what the prover must say.
struct Broken {
    const char* what;
    Example example;
    void (*damage)(std::vector<Plan>&);
};

void infer(Plan& plan) {
    inferEdges(plan);
}

void erase(Plan& plan, std::size_t step) {
    plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(step));
    infer(plan);
}

const Broken kBroken[] = {
    {"unmatched recv", kExamples[0], [](std::vector<Plan>& p) { erase(p[0], 0); }},
    {"unmatched wait", kExamples[1], [](std::vector<Plan>& p) { erase(p[2], 0); }},
    {"sends 1 chunks, receives 2", kExamples[4],
     [](std::vector<Plan>& p) {
         p[1].steps[2].target.push_back({1, Buffer::kOutput, 1});
     }},
    {"deadlock", kExamples[6],  // 0 sends when 2 has heard
     [](std::vector<Plan>& p) {
         p[0].steps.insert(p[0].steps.begin(), {Verb::kWait, {}, {}, {2}});
         p[2].steps.push_back({Verb::kSignal, {}, {}, {0}});
         infer(p[0]);
         infer(p[2]);
     }},
    {"may not have entered", kExamples[1],
     [](std::vector<Plan>& p) {
         for (Plan& plan : p) {
             erase(plan, 0);
             erase(plan, 0);
         }
     }},
    {"may have left", kExamples[1],
     [](std::vector<Plan>& p) {
         for (Plan& plan : p) {
             erase(plan, plan.steps.size() - 1);
             erase(plan, plan.steps.size() - 1);
         }
     }},
    {"race", kExamples[0], [](std::vector<Plan>& p) { p[1].steps[4].after.clear(); }},
    {"reads nothing", kExamples[5],
     [](std::vector<Plan>& p) {
         p[0].steps[2].sources[0] = p[0].steps[2].target;
         p[0].steps[2].target[0].chunk = 1;
         infer(p[0]);
     }},
    {"lacks a contributor", kExamples[1],
     [](std::vector<Plan>& p) {
         p[0].steps[2].sources.pop_back();
         p[0].steps[2].completes = false;
     }},
    {"other than every contributor", kExamples[1],
     [](std::vector<Plan>& p) { p[0].steps[2].sources[0] = p[0].steps[2].sources[1]; }},
    {"never completed", kExamples[1],
     [](std::vector<Plan>& p) { p[1].steps[2].completes = false; }},
    {"completes by a copy", kExamples[1],
     [](std::vector<Plan>& p) {
         p[1].steps[2].completes = false;
         p[1].steps[3].completes = true;
     }},
    {"completes twice", kExamples[2], [](std::vector<Plan>& p) { p[1].steps[6].completes = true; }},
    {"differs in bits", kExamples[3],
     [](std::vector<Plan>& p) { std::swap(p[1].steps[3].sources[1], p[1].steps[3].sources[2]); }},
    {"in place", kExamples[5],
     [](std::vector<Plan>& p) {
         for (Plan& plan : p) {
             plan.inPlaceSafe = true;
             infer(plan);
         }
     }},
    {"has come", kExamples[7],
     [](std::vector<Plan>& p) {
         for (Plan& plan : p) {
             erase(plan, 3);
             erase(plan, 2);
         }
     }},
    {"may have left", kExamples[3], [](std::vector<Plan>& p) { p[2].sharedOutlivesCall = false; }},
    {"not ordered", kExamples[2], [](std::vector<Plan>& p) { p[2].steps[4].after.clear(); }},
    {"different shared slots", kExamples[2],
     [](std::vector<Plan>& p) {
         p[1].shared.push_back({0, 0});
     }},
    {"of another call", kExamples[2], [](std::vector<Plan>& p) { p[1].root = 1; }},
    {"writes chunk 1 of block 0 to scratch", kExamples[0],
     [](std::vector<Plan>& p) {
         for (Plan& plan : p) plan.chunking.cuts = {{0, 1}, {1, 8}, {4, 8}, {1, 1}};
         p[1].scratch[1] = {0, 0};
     }},
};

TEST(Prove, SaysWhatIsWrong) {
    for (const Broken& broken : kBroken) {
        const int ranks = 3;
        auto plans = plansOf({broken.example.collective, oneNode(ranks),
                              broken.example.isChunkEach ? ranks : 1, broken.example.mapping},
                             broken.example.author);
        ASSERT_TRUE(proveBothModels(broken.example.collective, plans, oneNode(ranks)));
        broken.damage(plans);
        const Proof proof = proveBothModels(broken.example.collective, plans, oneNode(ranks));
        EXPECT_FALSE(proof) << broken.what;
        EXPECT_NE(proof.what.find(broken.what), std::string::npos)
            << "wanted: " << broken.what << "\ngot: " << proof.what;
    }
}

TEST(Prove, TellsLanesThatNeedMoreThanOneCredit) {
    // the second message must pass the first: 1 posts the recv of the first only after a signal
    // that 0 gives when the second has gone
    const Author author = [](PlanBuilder& plan) {
        const std::vector<Rank> all = {0, 1};
        const Slice slot = plan.grabScratch({{0, 0}});
        if (plan.me() == 0) {
            plan.copy(slot, plan.input()({0}));
            plan.send(1, slot);
            plan.send(1, plan.input()({0}));
            plan.signal(all);
            plan.copy(plan.output()({0}), slot);
        } else {
            plan.wait(all);
            plan.recv(0, plan.output()({0}));
            plan.recv(0, slot);
        }
    };
    const std::vector<int> nodes = {0, 1};
    const auto plans = plansOf({Collective::kBroadcast, nodes}, author);
    EXPECT_TRUE(proveBothModels(Collective::kBroadcast, plans, nodes, false));
    EXPECT_FALSE(proveBothModels(Collective::kBroadcast, plans, nodes, true));
}

}  // namespace
}  // namespace isthmus::test
