#include "scheduler/search/bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isthmus::scheduler {
namespace {

// 64 bits of mantissa: some thirty roundings of sums up to 2^62 stay below a unit.
using Real = long double;
constexpr Real kRounding = 1e-17L;

/// Which share of a pipe's edges a rank answers for when it meets `l` of its chain of `k` in its
/// node.
enum class PipeShare {
    kOneEnd,    ///< 1 / l, whole chains 0: a piece of a chain has at least one end that is cut
    kBothEnds,  ///< 2 / l, whole chains too: what is owed before the ends of chains are paid back
    kMean,      ///< 2 / l - 2 / k: all nodes together, each piece but for the ends of its chain
};

/// log l; most that are asked for are of small numbers, again and again.
Real logOf(int l) {
    static const std::vector<Real> known = [] {
        std::vector<Real> logs(1025);
        for (std::size_t at = 1; at < logs.size(); ++at) logs[at] = std::log(static_cast<Real>(at));
        return logs;
    }();
    const auto at = static_cast<std::size_t>(l);
    return at < known.size() ? known[at] : std::log(static_cast<Real>(l));
}

struct Piece {
    Real length;  ///< of the budget of logs
    Real slope;   ///< falls by this for each unit
};

/// The share of one rank in the cost of its group on the axis, of which `l` members are with it.
Real shareOf(Axis axis, int l, int k, PipeShare pipe) {
    const Real members = l;
    if (axis == Axis::kExpert) return static_cast<Real>(k - l);
    if (axis != Axis::kPipe) return l == k ? 0 : 1 / members;
    switch (pipe) {
    case PipeShare::kOneEnd:
        return l == k ? 0 : 1 / members;
    case PipeShare::kBothEnds:
        return 2 / members;
    case PipeShare::kMean:
        break;
    }
    return 2 / members - 2 / static_cast<Real>(k);
}

/// The lower convex hull of the shares over log l, for l up to `most`, as falling pieces.
std::vector<Piece> hullOf(Axis axis, Real weight, int k, int most, PipeShare pipe) {
    struct Point {
        Real x;
        Real y;
    };
    std::vector<Point> hull;
    for (int l = 1; l <= most; ++l) {
        const Point next{logOf(l), weight * shareOf(axis, l, k, pipe)};
        while (hull.size() >= 2) {
            const Point& last = hull.back();
            const Point& before = hull[hull.size() - 2];
            const Real turn = (last.x - before.x) * (next.y - before.y) -
                              (last.y - before.y) * (next.x - before.x);
            if (turn > 0) break;
            hull.pop_back();
        }
        hull.push_back(next);
    }
    std::vector<Piece> pieces;
    for (std::size_t at = 1; at < hull.size(); ++at) {
        const Real length = hull[at].x - hull[at - 1].x;
        const Real slope = (hull[at - 1].y - hull[at].y) / length;
        if (slope > 0) pieces.push_back({length, slope});
    }
    return pieces;
}

/// Least cost of a node of `size` ranks; `left` is an axis that costs nothing, if any.
Real leastOf(const Shape& shape, const Weights& weights, int size, PipeShare pipe,
             const Axis* left = nullptr) {
    std::vector<Piece> pieces;
    Real alone = 0;  // of a rank that meets nobody
    for (const Axis axis : kAxes) {
        const int k = shape.degree(axis);
        const auto weight = static_cast<Real>(weights.of[axis]);
        if (k == 1 || weight == 0 || (left != nullptr && *left == axis)) continue;
        alone += weight * shareOf(axis, 1, k, pipe);
        const std::vector<Piece> more = hullOf(axis, weight, k, std::min(k, size), pipe);
        pieces.insert(pieces.end(), more.begin(), more.end());
    }
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& one, const Piece& other) { return one.slope > other.slope; });
    Real budget = logOf(size);
    for (const Piece& piece : pieces) {
        const Real taken = std::min(budget, piece.length);
        alone -= taken * piece.slope;
        budget -= taken;
    }
    return std::max(Real{0}, alone * size);
}

/// The next whole number, not taken in by the rounding of logs.
std::int64_t wholeAbove(Real value) {
    return static_cast<std::int64_t>(std::ceil(value * (1 - kRounding) - 1e-6L));
}

/// Nodes of one size.
struct Kind {
    int size;
    int nodes;
};

std::vector<Kind> kindsOf(std::vector<int> sizes) {
    std::sort(sizes.begin(), sizes.end());
    std::vector<Kind> kinds;
    for (const int size : sizes) {
        if (kinds.empty() || kinds.back().size != size) kinds.push_back({size, 0});
        ++kinds.back().nodes;
    }
    return kinds;
}

/// Least B that all nodes can stay at when each end of a chain takes one edge off the node it is
/// in: there are two ends a chain, and a node takes whole ends.
std::int64_t boundByEnds(const Shape& shape, const Weights& weights,
                         const std::vector<Kind>& kinds) {
    const auto weight = static_cast<Real>(weights.of[Axis::kPipe]);
    if (shape.degree(Axis::kPipe) == 1 || weight == 0) return 0;
    const Real ends = Real{2} * shape.ranks() / shape.degree(Axis::kPipe);
    std::vector<Real> owed;
    for (const Kind& kind : kinds) {
        owed.push_back(leastOf(shape, weights, kind.size, PipeShare::kBothEnds));
    }
    const auto isPossible = [&](Real most) {
        Real wanted = 0;
        for (std::size_t at = 0; at < kinds.size(); ++at) {
            const Real over = std::max(Real{0}, owed[at] * (1 - kRounding) - most);
            const Real each = std::ceil(over / weight - 1e-9L);
            if (each > kinds[at].size) return false;
            wanted += each * kinds[at].nodes;
        }
        return wanted <= ends;
    };
    Real low = 0;
    Real high = *std::max_element(owed.begin(), owed.end());
    for (int round = 0; round < 100 && high - low > 0.25L; ++round) {
        const Real middle = (low + high) / 2;
        (isPossible(middle) ? high : low) = middle;
    }
    return wholeAbove(low);  // just not possible, or 0
}

NodeCost boundOf(const Shape& shape, const Weights& weights, const std::vector<Kind>& kinds) {
    NodeCost bound;
    Real ones = 0;
    Real sum = 0;
    std::int64_t nodes = 0;
    for (const Kind& kind : kinds) {
        const Real single = leastOf(shape, weights, kind.size, PipeShare::kOneEnd);
        bound.most = std::max(bound.most, wholeAbove(single));
        ones += single * kind.nodes;
        sum += leastOf(shape, weights, kind.size, PipeShare::kMean) * kind.nodes;
        nodes += kind.nodes;
    }
    bound.sum = wholeAbove(std::max(sum, ones));
    bound.most = std::max(bound.most, (bound.sum + nodes - 1) / nodes);
    bound.most = std::max(bound.most, boundByEnds(shape, weights, kinds));
    return bound;
}

}  // namespace

std::int64_t leastOfNode(const Shape& shape, const Weights& weights, int size) {
    return wholeAbove(leastOf(shape, weights, size, PipeShare::kOneEnd));
}

std::int64_t costOfSplit(const Shape& shape, const Weights& weights, const std::vector<int>& sizes,
                         Axis axis) {
    const std::int64_t part =
        weights.of[axis] * (axis == Axis::kExpert ? shape.degree(axis) - 1 : 1);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const Kind& kind : kindsOf(sizes)) {
        const Real others = leastOf(shape, weights, kind.size, PipeShare::kOneEnd, &axis);
        least = std::min(least, part + wholeAbove(others));
    }
    return least;
}

namespace {

/// The bound when the groups of a set of axes are items: one of them is cut after all, which costs
/// `cut`, or blocks of ranks stay together.
std::int64_t boundOfBlocks(const Shape& shape, const Weights& weights,
                           const std::vector<Kind>& kinds, const Degrees& left, std::int64_t cut) {
    const Shape blocks(left);
    const int block = shape.ranks() / blocks.ranks();
    std::vector<Kind> items = kinds;
    for (Kind& kind : items) {
        if (kind.size % block != 0) return cut;  // some group must be
        kind.size /= block;
    }
    Weights heavier = weights;
    for (const Axis axis : kAxes) heavier.of[axis] *= left[axis] > 1 ? block : 0;
    return std::min(cut, boundOf(blocks, heavier, items).most);
}

}  // namespace

NodeCost lowerBound(const Shape& shape, const Weights& weights, const std::vector<int>& sizes,
                    std::int64_t enough) {
    if (sizes.size() < 2) return {};
    const std::vector<Kind> kinds = kindsOf(sizes);
    NodeCost best = boundOf(shape, weights, kinds);
    if (best.most >= enough) return best;
    PerAxis<std::int64_t> split(0);
    for (const Axis axis : kAxes) {
        if (weights.of[axis] > 0) split[axis] = costOfSplit(shape, weights, sizes, axis);
    }
    for (unsigned set = 1; set < 1U << kAxes.size() && best.most < enough; ++set) {
        Degrees left = shape.degrees();
        std::int64_t cut = std::numeric_limits<std::int64_t>::max();
        for (const Axis axis : kAxes) {
            if ((set >> static_cast<unsigned>(axis) & 1) == 0) continue;
            left[axis] = 1;
            cut = std::min(cut, split[axis]);
        }
        if (cut <= best.most) continue;  // also where an axis of the set is not split at all
        best.most = std::max(best.most, boundOfBlocks(shape, weights, kinds, left, cut));
    }
    return best;
}

}  // namespace isthmus::scheduler
