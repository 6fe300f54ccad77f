#include "tests/support/plan_examples.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "comm/plan/chunking.hpp"

namespace isthmus::test {

std::vector<Plan> plansOf(const PlansWanted& wanted, const Author& author) {
    std::vector<Plan> plans;
    const int ranks = static_cast<int>(wanted.nodeOfRank.size());
    for (Rank me = 0; me < ranks; ++me) {
        PlanBuilder builder(wanted.collective, me, ranks, wanted.root, evenChunking(wanted.chunks),
                            wanted.nodeOfRank, wanted.mapping);
        author(builder);
        Result<Plan> plan = builder.finish();
        EXPECT_TRUE(plan.ok()) << plan.status().what();
        plans.push_back(plan.ok() ? *plan : Plan());
    }
    return plans;
}

std::vector<Rank> everybody(int ranks) {
    std::vector<Rank> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

std::vector<int> oneNode(int ranks) {
    return std::vector<int>(static_cast<std::size_t>(ranks), 0);
}

namespace {

Slice in(PlanBuilder& plan, int chunk) {
    return plan.input()({chunk});
}
Slice out(PlanBuilder& plan, int chunk) {
    return plan.output()({chunk});
}
Completes never() {
    return Completes::kNo;
}

}  // namespace

void ringAllReduce(PlanBuilder& plan) {
    const int n = plan.ranks();
    const int me = plan.me();
    const auto at = [n](int position) { return ((position % n) + n) % n; };
    if (n == 1) return plan.copy(out(plan, 0), in(plan, 0), Completes::kYes);
    const Slice landing = plan.grabScratch({{0, 0}, {0, 0}});
    Slice partial = in(plan, at(me - 1));
    for (int round = 0; round < n - 1; ++round) {
        const int chunk = at(me - round - 2);
        const Slice arrived = {landing[static_cast<std::size_t>(round % 2)]};
        plan.send(at(me + 1), partial);
        plan.recv(at(me - 1), arrived);
        const bool isLast = round == n - 2;
        partial = isLast ? out(plan, chunk) : arrived;
        plan.reduce(partial, {arrived, in(plan, chunk)}, isLast ? Completes::kYes : never());
    }
    for (int round = 0; round < n - 1; ++round) {
        plan.send(at(me + 1), out(plan, at(me - round)));
        plan.recv(at(me - 1), out(plan, at(me - round - 1)));
    }
}

void exchangeAllReduce(PlanBuilder& plan) {
    const int n = plan.ranks();
    const int me = plan.me();
    std::vector<Slice> parts;
    for (Rank peer = 0; peer < n; ++peer) {
        parts.push_back(peer == me ? in(plan, me) : plan.grabScratch({{0, me}}));
        if (peer != me) plan.send(peer, in(plan, peer));
    }
    for (Rank peer = 0; peer < n; ++peer) {
        if (peer != me) plan.recv(peer, parts[static_cast<std::size_t>(peer)]);
    }
    plan.reduce(out(plan, me), parts, Completes::kYes);
    for (Rank peer = 0; peer < n; ++peer) {
        if (peer == me) continue;
        plan.send(peer, out(plan, me));
        plan.recv(peer, out(plan, peer));
    }
}

void directAllReduce(PlanBuilder& plan) {
    const std::vector<Rank> all = everybody(plan.ranks());
    const Chunks mine = {plan.me()};
    plan.meet(all);
    std::vector<Slice> parts;
    for (const Rank peer : all) parts.push_back(plan.at(peer).input(mine));
    plan.reduce(plan.output()(mine), parts, Completes::kYes);
    for (const Rank peer : all) {
        if (peer != plan.me()) plan.copy(plan.at(peer).output(mine), plan.output()(mine));
    }
    plan.meet(all);
}

void stagedAllReduce(PlanBuilder& plan) {
    const std::vector<Rank> all = everybody(plan.ranks());
    const Slice input = plan.input()(all);
    plan.copy(plan.grabShared(plan.like(input)), input);
    plan.meet(all);
    std::vector<Slice> parts;
    for (const Rank peer : all) parts.push_back(plan.at(peer).shared(plan.me()));
    plan.reduce(plan.at(plan.me()).shared(plan.me()), parts, Completes::kYes);
    plan.meet(all);
    for (const Rank peer : all) plan.copy(out(plan, peer), plan.at(peer).shared(peer));
    plan.meet(all);
}

void inlineAllReduce(PlanBuilder& plan) {
    const std::vector<Rank> all = everybody(plan.ranks());
    const Slice input = plan.input()(all);
    plan.setSharedOutlivesCall(true);
    plan.copy(plan.grabShared(plan.like(input)), input);
    plan.meet(all);
    std::vector<Slice> parts;
    for (const Rank peer : all) parts.push_back(plan.at(peer).shared(all));
    plan.reduce(plan.output()(all), parts, Completes::kYes);
}

void ringAllGather(PlanBuilder& plan) {
    const int n = plan.ranks();
    const int me = plan.me();
    const auto at = [n](int position) { return ((position % n) + n) % n; };
    plan.copy(out(plan, me), in(plan, 0));
    for (int round = 0; round < n - 1; ++round) {
        plan.send(at(me + 1), out(plan, at(me - round)));
        plan.recv(at(me - 1), out(plan, at(me - round - 1)));
    }
}

void directAllToAll(PlanBuilder& plan) {
    const std::vector<Rank> all = everybody(plan.ranks());
    plan.setInPlaceSafe(false);
    plan.meet(all);
    for (const Rank peer : all) plan.copy(out(plan, peer), plan.at(peer).input({plan.me()}));
    plan.meet(all);
}

void chainBroadcast(PlanBuilder& plan) {
    const int n = plan.ranks();
    const int place = (plan.me() - plan.root() + n) % n;
    if (place == 0) plan.copy(out(plan, 0), in(plan, 0));
    if (place > 0) plan.recv((plan.me() + n - 1) % n, out(plan, 0));
    if (place < n - 1) plan.send((plan.me() + 1) % n, out(plan, 0));
}

void disseminationBarrier(PlanBuilder& plan) {
    const int n = plan.ranks();
    for (int hop = 1; hop < n; hop *= 2) {
        plan.signal(std::vector<Rank>{(plan.me() + hop) % n});
        plan.wait(std::vector<Rank>{(plan.me() + n - hop) % n});
    }
}

}  // namespace isthmus::test
