#include "scheduler/search/exact.hpp"

#include <algorithm>
#include <bit>

#include "comm/base/assert.hpp"
#include "scheduler/search/bound.hpp"
#include "scheduler/search/orders.hpp"

namespace isthmus::scheduler {
namespace {

using Set = std::uint32_t;  // of items
static_assert(kMostItems <= 32);

/// Items that pay together: a group, or two neighbours of a chain.
struct Line {
    Set members = 0;
    std::int64_t weight = 0;
    bool paysByPair = false;
};

/// Nodes of one size that have no items yet.
struct SizeClass {
    int size = 0;
    int nodes = 0;
    std::int64_t least = 0;  ///< leastOfNode
};

struct Part {
    Set items = 0;
    int size = 0;
};

Set bit(int item) {
    return Set{1} << static_cast<unsigned>(item);
}

/// Weights of the axes from the dearest: neighbours in this sequence are dear to part.
std::vector<Axis> dearestFirst(const Weights& weights) {
    std::vector<Axis> axes(kAxes.begin(), kAxes.end());
    std::stable_sort(axes.begin(), axes.end(),
                     [&](Axis left, Axis right) { return weights.of[left] > weights.of[right]; });
    return axes;
}

std::vector<Line> linesOf(const Shape& shape, const Weights& weights,
                          const std::vector<int>& itemOfRank) {
    std::vector<Line> lines;
    for (const Axis axis : kAxes) {
        const int degree = shape.degree(axis);
        if (degree == 1 || weights.of[axis] == 0) continue;
        for (int rank = 0; rank < shape.ranks(); ++rank) {
            const int at = shape.coordinate(rank, axis);
            const bool isPipe = axis == Axis::kPipe;
            if (isPipe ? at + 1 == degree : at != 0) continue;
            Line line{0, weights.of[axis], axis == Axis::kExpert};
            for (int member = 0; member < (isPipe ? 2 : degree); ++member) {
                const int other = rank + member * shape.stride(axis);
                line.members |= bit(itemOfRank[static_cast<std::size_t>(other)]);
            }
            lines.push_back(line);
        }
    }
    return lines;
}

class Search {
public:
    Search(const Shape& shape, const Weights& weights, const std::vector<int>& sizes,
           const NodeCost& known, const NodeCost& bound, std::uint64_t limit, const Watch& watch);

    void run() { placeRest(0, {}); }
    bool isComplete() const { return !isSpent_; }
    std::uint64_t looked() const { return looked_; }
    /// Node of each rank of the shape; empty when nothing was better.
    std::vector<int> answer(const std::vector<int>& sizes) const;

private:
    void placeRest(Set placed, const NodeCost& done);
    void fill(Part part, int next, Set outside, Set placed, const NodeCost& done);
    std::int64_t leastUnits(Set inside, Set outside, int need) const;
    bool isFirstOfItsKind(Set inside, int need) const;
    bool isHopeless(std::int64_t units, const SizeClass& own, const NodeCost& done) const;
    bool mayStop();

    const Shape& shape_;
    std::vector<int> sequence_;  ///< rank of each item
    std::vector<Line> lines_;
    std::vector<SizeClass> classes_;
    std::int64_t leastOfRest_ = 0;  ///< of all nodes without items
    NodeCost best_;
    NodeCost bound_;
    std::vector<Part> parts_;
    std::vector<Part> bestParts_;
    std::uint64_t looked_ = 0;
    std::uint64_t limit_;
    const Watch& watch_;
    bool isSpent_ = false;
    bool isDone_ = false;
};

Search::Search(const Shape& shape, const Weights& weights, const std::vector<int>& sizes,
               const NodeCost& known, const NodeCost& bound, std::uint64_t limit,
               const Watch& watch)
    : shape_(shape),
      sequence_(sequenceOf(shape, dearestFirst(weights))),
      best_(known),
      bound_(bound),
      limit_(limit),
      watch_(watch) {
    std::vector<int> itemOfRank(sequence_.size());
    for (std::size_t item = 0; item < sequence_.size(); ++item) {
        itemOfRank[static_cast<std::size_t>(sequence_[item])] = static_cast<int>(item);
    }
    lines_ = linesOf(shape, weights, itemOfRank);
    std::vector<int> sorted = sizes;
    std::sort(sorted.rbegin(), sorted.rend());
    for (const int size : sorted) {
        if (classes_.empty() || classes_.back().size != size) {
            classes_.push_back({size, 0, leastOfNode(shape, weights, size)});
        }
        ++classes_.back().nodes;
        leastOfRest_ += classes_.back().least;
    }
}

/// What a node pays at least that has `inside`, not `outside`, and `need` more items.
std::int64_t Search::leastUnits(Set inside, Set outside, int need) const {
    std::int64_t units = 0;
    for (const Line& line : lines_) {
        const int all = std::popcount(line.members);
        const int in = std::popcount(line.members & inside);
        const int out = std::popcount(line.members & outside);
        if (line.paysByPair) {
            const int most = std::min(all - out, in + need);  // the product is concave in between
            units += line.weight * std::min(in * (all - in), most * (all - most));
        } else if (in > 0 && (out > 0 || all - in > need)) {
            units += line.weight;
        }
    }
    return units;
}

/// Coordinates of rings and all-to-alls are names: the first node may take them in turn, since
/// renaming them changes no cost. It has item 0, which has coordinate 0 everywhere.
bool Search::isFirstOfItsKind(Set inside, int need) const {
    for (const Axis axis : kAxes) {
        if (axis == Axis::kPipe || shape_.degree(axis) == 1) continue;
        Set used = 0;
        for (Set rest = inside; rest != 0; rest &= rest - 1) {
            const int rank = sequence_[static_cast<std::size_t>(std::countr_zero(rest))];
            used |= bit(shape_.coordinate(rank, axis));
        }
        if (static_cast<int>(std::bit_width(used)) - std::popcount(used) > need) return false;
    }
    return true;
}

bool Search::isHopeless(std::int64_t units, const SizeClass& own, const NodeCost& done) const {
    const NodeCost least{
        std::max({done.most, units, bound_.most}),
        std::max(done.sum + leastOfRest_ - own.least + std::max(units, own.least), bound_.sum)};
    return least >= best_;
}

bool Search::mayStop() {
    ++looked_;
    if (looked_ >= limit_) isSpent_ = true;
    if (looked_ % (1 << 16) == 0) {
        watch_.tell("branch and bound", looked_);
        if (watch_.stops()) isSpent_ = true;
    }
    return isSpent_ || isDone_;
}

/// Gives `part` its last `need` items out of those from `next` on that are not outside.
void Search::fill(Part part, int next, Set outside, Set placed, const NodeCost& done) {
    if (mayStop()) return;
    SizeClass& own = *std::find_if(classes_.begin(), classes_.end(),
                                   [&](const SizeClass& each) { return each.size == part.size; });
    const int need = part.size - std::popcount(part.items);
    if (need == 0) {
        const Set all = static_cast<Set>((std::uint64_t{1} << sequence_.size()) - 1);
        outside = all & ~part.items;
    }
    if (placed == 0 && !isFirstOfItsKind(part.items, need)) return;
    const std::int64_t units = leastUnits(part.items, outside, need);
    if (isHopeless(units, own, done)) return;
    if (need == 0) {
        parts_.push_back(part);
        --own.nodes;
        leastOfRest_ -= own.least;
        placeRest(placed | part.items, {std::max(done.most, units), done.sum + units});
        leastOfRest_ += own.least;
        ++own.nodes;
        parts_.pop_back();
        return;
    }
    const int items = static_cast<int>(sequence_.size());
    while (next < items && (outside & bit(next)) != 0) ++next;
    const int left = items - std::popcount(outside | part.items);
    if (next == items || left < need) return;
    fill({part.items | bit(next), part.size}, next + 1, outside, placed, done);
    fill(part, next + 1, outside | bit(next), placed, done);
}

/// The first item without a node goes to a node of each size in turn.
void Search::placeRest(Set placed, const NodeCost& done) {
    const int first = std::countr_one(placed);
    if (first == static_cast<int>(sequence_.size())) {
        if (done >= best_) return;
        best_ = done;
        bestParts_ = parts_;
        isDone_ = best_ <= bound_;
        return;
    }
    for (std::size_t at = 0; at < classes_.size(); ++at) {
        if (classes_[at].nodes == 0) continue;
        fill({bit(first), classes_[at].size}, first + 1, placed, placed, done);
    }
}

std::vector<int> Search::answer(const std::vector<int>& sizes) const {
    std::vector<int> nodeOfRank;
    if (bestParts_.empty()) return nodeOfRank;
    nodeOfRank.resize(sequence_.size());
    std::vector<bool> isTaken(sizes.size());
    for (const Part& part : bestParts_) {
        std::size_t node = 0;
        while (isTaken[node] || sizes[node] != part.size) ++node;
        isTaken[node] = true;
        for (Set rest = part.items; rest != 0; rest &= rest - 1) {
            const int rank = sequence_[static_cast<std::size_t>(std::countr_zero(rest))];
            nodeOfRank[static_cast<std::size_t>(rank)] = static_cast<int>(node);
        }
    }
    return nodeOfRank;
}

/// Node of each rank of `shape` from that of its block.
std::vector<int> unfold(const Shape& shape, const Shape& blocks, const std::vector<int>& nodes) {
    std::vector<int> nodeOfRank(static_cast<std::size_t>(shape.ranks()));
    for (int rank = 0; rank < shape.ranks(); ++rank) {
        int block = 0;
        for (const Axis axis : kAxes) {
            if (blocks.degree(axis) > 1)
                block += shape.coordinate(rank, axis) * blocks.stride(axis);
        }
        nodeOfRank[static_cast<std::size_t>(rank)] = nodes[static_cast<std::size_t>(block)];
    }
    return nodeOfRank;
}

}  // namespace

Degrees wholeAxes(const Shape& shape, const Weights& weights, const std::vector<int>& sizes,
                  const NodeCost& known) {
    Degrees degrees = shape.degrees();
    for (const Axis axis : kAxes) {
        if (weights.of[axis] == 0) continue;
        if (costOfSplit(shape, weights, sizes, axis) > known.most) degrees[axis] = 1;
    }
    return degrees;
}

ExactAnswer branchAndBound(const Shape& shape, const Weights& weights,
                           const std::vector<int>& sizes, const NodeCost& known,
                           const NodeCost& bound, std::uint64_t limit, const Watch& watch) {
    const Shape blocks(wholeAxes(shape, weights, sizes, known));
    const int block = shape.ranks() / blocks.ranks();
    ExactAnswer answer;
    answer.items = blocks.ranks();
    if (answer.items > kMostItems) return answer;
    Weights heavier = weights;
    for (const Axis axis : kAxes) heavier.of[axis] *= blocks.degree(axis) > 1 ? block : 0;
    std::vector<int> items = sizes;
    for (int& size : items) {
        ISTHMUS_ASSERT(size % block == 0);  // `known` keeps the blocks whole
        size /= block;
    }
    Search search(blocks, heavier, items, known, bound, limit, watch);
    search.run();
    answer.isComplete = search.isComplete();
    answer.looked = search.looked();
    const std::vector<int> nodes = search.answer(items);
    if (!nodes.empty()) answer.nodeOfRank = unfold(shape, blocks, nodes);
    return answer;
}

}  // namespace isthmus::scheduler
