#include "scheduler/search/improve.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace isthmus::scheduler {
namespace {

/// What a swap may change: the dearer of two nodes, then both together.
NodeCost pairCost(const Seating& seating, int one, int other) {
    return {std::max(seating.units(one), seating.units(other)),
            seating.units(one) + seating.units(other)};
}

class Improver {
public:
    Improver(Seating& seating, const Effort& effort, const NodeCost& enough, const Watch& watch)
        : seating_(seating),
          limit_(seating.work() + effort.work),
          shakes_(effort.shakes),
          enough_(enough),
          watch_(watch) {}

    void run();

private:
    bool isSpent() const { return seating_.work() >= limit_ || stopped_; }
    bool isGoodEnough() const { return seating_.cost() <= enough_; }
    /// Looks whether somebody wants it to end.
    void look() {
        watch_.tell("local search", seating_.work());
        stopped_ = stopped_ || watch_.stops();
    }
    void descend();
    bool cheapen(int node);
    bool cheapenByRanks(int node);
    bool cheapenByBlocks(int node);
    bool tryBlocks(int node, int rank, unsigned axes);
    std::vector<int> blockOf(int rank, unsigned axes) const;
    void shake();

    Seating& seating_;
    std::uint64_t limit_;
    int shakes_;
    NodeCost enough_;
    const Watch& watch_;
    bool stopped_ = false;
    std::minstd_rand random_{1};  // the same on every machine (C++ standard, rand.predef)
};

/// Looks through all swaps of a rank of the node with one elsewhere and makes the best.
bool Improver::cheapenByRanks(int node) {
    int bestOne = -1;
    int bestOther = -1;
    NodeCost bestGain;  // most: by how much the dearer node falls; sum likewise
    const std::vector<int> here = seating_.ranksOf(node);
    for (const int one : here) {
        for (int other = 0; other < seating_.shape().ranks(); ++other) {
            const int there = seating_.nodeOf(other);
            if (there == node) continue;
            const NodeCost before = pairCost(seating_, node, there);
            seating_.swap(one, other);
            const NodeCost after = pairCost(seating_, node, there);
            seating_.swap(one, other);
            const NodeCost gain{before.most - after.most, before.sum - after.sum};
            if (after < before && gain > bestGain) {
                bestGain = gain;
                bestOne = one;
                bestOther = other;
            }
        }
        look();
        if (isSpent()) break;
    }
    if (bestOne < 0) return false;
    seating_.swap(bestOne, bestOther);
    return true;
}

/// The ranks that share the rank's node and its coordinates on all axes but these.
std::vector<int> Improver::blockOf(int rank, unsigned axes) const {
    const Shape& shape = seating_.shape();
    std::vector<int> block;
    for (const int other : seating_.ranksOf(seating_.nodeOf(rank))) {
        bool isIn = true;
        for (const Axis axis : kAxes) {
            if ((axes >> static_cast<unsigned>(axis) & 1) != 0) continue;
            isIn = isIn && shape.coordinate(rank, axis) == shape.coordinate(other, axis);
        }
        if (isIn) block.push_back(other);
    }
    std::sort(block.begin(), block.end());
    return block;
}

/// Swaps the block of the rank with the first block of its kind elsewhere that makes both cheaper.
bool Improver::tryBlocks(int node, int rank, unsigned axes) {
    const std::vector<int> block = blockOf(rank, axes);
    if (block.size() < 2) return false;
    for (int there = 0; there < seating_.nodes() && !isSpent(); ++there) {
        if (there == node) continue;
        const std::vector<int> candidates = seating_.ranksOf(there);
        for (const int other : candidates) {
            const std::vector<int> theirs = blockOf(other, axes);
            if (theirs.size() != block.size() || theirs.front() != other) continue;
            const NodeCost before = pairCost(seating_, node, there);
            seating_.swap(block, theirs);
            if (pairCost(seating_, node, there) < before) return true;
            seating_.swap(block, theirs);
        }
    }
    return false;
}

bool Improver::cheapenByBlocks(int node) {
    const Shape& shape = seating_.shape();
    unsigned split = 0;
    for (const Axis axis : kAxes) {
        if (shape.degree(axis) > 1) split |= 1U << static_cast<unsigned>(axis);
    }
    for (unsigned axes = 1; axes < 1U << kAxes.size(); ++axes) {
        if ((axes & ~split) != 0) continue;
        const std::vector<int> here = seating_.ranksOf(node);
        for (const int rank : here) {
            if (blockOf(rank, axes).front() != rank) continue;
            if (tryBlocks(node, rank, axes)) return true;
            look();
            if (isSpent()) return false;
        }
    }
    return false;
}

bool Improver::cheapen(int node) {
    return cheapenByRanks(node) || (!isSpent() && cheapenByBlocks(node));
}

/// The sorted list of costs falls with every swap, so this ends.
void Improver::descend() {
    std::vector<int> order(static_cast<std::size_t>(seating_.nodes()));
    for (bool isBetter = true; isBetter && !isSpent() && !isGoodEnough();) {
        isBetter = false;
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int left, int right) {
            return seating_.units(left) > seating_.units(right);
        });
        for (const int node : order) {
            while (!isSpent() && cheapen(node)) isBetter = true;
            if (isSpent() || isGoodEnough()) return;
        }
    }
}

/// A few seats of the dearest node go elsewhere.
void Improver::shake() {
    const int hot = seating_.hottest();
    const auto ranks = static_cast<unsigned>(seating_.shape().ranks());
    for (int count = 0; count < 3; ++count) {
        const std::vector<int>& here = seating_.ranksOf(hot);
        const int one = here[random_() % here.size()];
        seating_.swap(one, static_cast<int>(random_() % ranks));
    }
}

void Improver::run() {
    descend();
    while (shakes_-- > 0 && !isSpent() && !isGoodEnough() && seating_.nodes() > 1) {
        const NodeCost best = seating_.cost();
        const std::vector<int> seats = seating_.nodeOfRank();
        shake();
        descend();
        look();
        if (seating_.cost() < best) continue;
        // Back, by swaps: whoever sits on a wrong seat changes with one who should be there.
        for (int rank = 0; rank < seating_.shape().ranks(); ++rank) {
            const int home = seats[static_cast<std::size_t>(rank)];
            if (seating_.nodeOf(rank) == home) continue;
            const std::vector<int>& there = seating_.ranksOf(home);
            const auto other = std::find_if(there.begin(), there.end(), [&](int each) {
                return seats[static_cast<std::size_t>(each)] != home;
            });
            seating_.swap(rank, *other);
        }
    }
}

}  // namespace

void improve(Seating& seating, const Effort& effort, const NodeCost& enough, const Watch& watch) {
    Improver(seating, effort, enough, watch).run();
}

}  // namespace isthmus::scheduler
