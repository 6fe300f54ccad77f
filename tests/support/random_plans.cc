#include "tests/support/random_plans.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "comm/plan/builder.hpp"
#include "comm/plan/chunking.hpp"

namespace isthmus::test {
namespace {

class Dreamer {
public:
    Dreamer(std::uint64_t seed, double carelessness) : random_(seed), carelessness_(carelessness) {}

    RandomCall run() {
        constexpr Collective kChoices[] = {Collective::kAllReduce, Collective::kAllGather,
                                           Collective::kBroadcast};
        call_.collective = kChoices[below(3)];
        ranks_ = 2 + below(4);
        chunks_ = 1 + below(3);
        root_ = below(ranks_);
        for (Rank rank = 0; rank < ranks_; ++rank) call_.nodeOfRank.push_back(below(2));
        for (Rank rank = 0; rank < ranks_; ++rank) {
            builders_.emplace_back(call_.collective, rank, ranks_, root_, evenChunking(chunks_),
                                   call_.nodeOfRank, Mapping::kAll);
        }
        landing_.resize(static_cast<std::size_t>(ranks_));
        if (chance() < 0.8) meetOnNodes();
        writeBody();
        meetOnNodes();
        for (PlanBuilder& builder : builders_) {
            Result<Plan> plan = builder.finish();
            if (!plan.ok()) return {};
            call_.plans.push_back(std::move(*plan));
        }
        return std::move(call_);
    }

private:
    int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
    double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }
    bool isForgotten() { return chance() < carelessness_; }
    PlanBuilder& of(Rank rank) { return builders_[static_cast<std::size_t>(rank)]; }
    bool isOneNode(Rank a, Rank b) const {
        return call_.nodeOfRank[static_cast<std::size_t>(a)] ==
               call_.nodeOfRank[static_cast<std::size_t>(b)];
    }

    void meetOnNodes() {
        std::vector<Rank> forgetful;
        for (Rank rank = 0; rank < ranks_; ++rank) {
            if (isForgotten()) forgetful.push_back(rank);
        }
        for (int node = 0; node < 2; ++node) {
            std::vector<Rank> group;
            for (Rank rank = 0; rank < ranks_; ++rank) {
                const bool isHere = call_.nodeOfRank[static_cast<std::size_t>(rank)] == node;
                const bool forgets =
                    std::find(forgetful.begin(), forgetful.end(), rank) != forgetful.end();
                if (isHere && !forgets) group.push_back(rank);
            }
            for (const Rank rank : group) of(rank).meet(group);
        }
    }

    void writeBody() {
        std::vector<int> chunks(static_cast<std::size_t>(chunks_));
        std::iota(chunks.begin(), chunks.end(), 0);
        std::shuffle(chunks.begin(), chunks.end(), random_);
        for (const int chunk : chunks) {
            if (call_.collective == Collective::kAllReduce) {
                spread(collect(chunk), chunk);
            } else if (call_.collective == Collective::kBroadcast) {
                of(root_).copy(of(root_).output()({chunk}), of(root_).input()({chunk}));
                spread(root_, chunk);
            } else {
                for (Rank rank = 0; rank < ranks_; ++rank) {
                    const int block = rank * chunks_ + chunk;
                    of(rank).copy(of(rank).output()({block}), of(rank).input()({chunk}));
                    spread(rank, block);
                }
            }
        }
    }

    std::vector<Rank> shuffled() {
        std::vector<Rank> all(static_cast<std::size_t>(ranks_));
        std::iota(all.begin(), all.end(), 0);
        std::shuffle(all.begin(), all.end(), random_);
        return all;
    }

    /// Sums of two ranks become one until one rank holds all; that rank is returned.
    Rank collect(int chunk) {
        std::vector<Rank> left = shuffled();
        std::vector<Slice> held(left.size());
        for (Rank rank = 0; rank < ranks_; ++rank) {
            held[static_cast<std::size_t>(rank)] = of(rank).input()({chunk});
        }
        while (left.size() > 1) {
            std::shuffle(left.begin(), left.end(), random_);
            const Rank from = left.back();
            left.pop_back();
            const Rank to = left.back();
            const bool isLast = left.size() == 1;
            Slice& sum = held[static_cast<std::size_t>(to)];
            const Slice& part = held[static_cast<std::size_t>(from)];
            const Slice target = of(to).output()({chunk});
            const Completes completes = isLast ? Completes::kYes : Completes::kNo;
            const bool isMapped = isOneNode(from, to) && chance() < 0.6;
            if (isMapped) {
                order(from, to);
                of(to).reduce(target, {sum, part}, completes);
                if (chance() < 0.3) order(to, from);
            } else {
                const Slice arrived = landing(to, chunk);
                of(from).send(to, part);
                of(to).recv(from, arrived);
                of(to).reduce(target, {sum, arrived}, completes);
            }
            sum = target;
        }
        return left.front();
    }

    /// From `source`, whoever has it hands it to somebody who has not.
    void spread(Rank source, int chunk) {
        std::vector<Rank> have = {source};
        for (const Rank to : shuffled()) {
            if (to == source) continue;
            const Rank from = have[static_cast<std::size_t>(below(static_cast<int>(have.size())))];
            const Slice target = At(to).output({chunk});
            const Slice value = At(from).output({chunk});
            const double way = isOneNode(from, to) ? chance() : 1;
            if (way < 0.3) {  // the reader pulls
                order(from, to);
                of(to).copy(target, value);
            } else if (way < 0.6) {  // the writer pushes, once the reader needs its output no more
                order(to, from);
                of(from).copy(target, value);
                order(from, to);
            } else {
                of(from).send(to, value);
                of(to).recv(from, target);
            }
            have.push_back(to);
        }
    }

    void order(Rank before, Rank after) {
        const bool isSignalled = !isForgotten();
        const bool isWaited = carelessness_ < 0.5 ? isSignalled : !isForgotten();
        if (isSignalled) of(before).signal(std::vector<Rank>{after});
        if (isWaited) of(after).wait(std::vector<Rank>{before});
    }

    /// A slot that had this chunk before, or a fresh one.
    Slice landing(Rank rank, int chunk) {
        auto& slots = landing_[static_cast<std::size_t>(rank)];
        if (slots.empty() || chance() < 0.3) {
            slots.push_back(of(rank).grabScratch({{0, chunk}}));
        }
        return slots[static_cast<std::size_t>(below(static_cast<int>(slots.size())))];
    }

    std::mt19937_64 random_;
    const double carelessness_;
    RandomCall call_;
    int ranks_ = 0;
    int chunks_ = 0;
    Rank root_ = 0;
    std::vector<PlanBuilder> builders_;
    std::vector<std::vector<Slice>> landing_;  // by rank
};

}  // namespace

RandomCall randomCall(std::uint64_t seed, double carelessness) {
    return Dreamer(seed, carelessness).run();
}

}  // namespace isthmus::test
