#include "comm/cost/symmetry.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "comm/algorithm/butterfly.hpp"
#include "comm/cost/plan_bytes.hpp"

namespace isthmus {
namespace {

// Up to so many ranks all plans are compared: 256 plans of an exchange take a second.
constexpr int kMostCompared = 256;

// (digit of `unit` + sign * digit of `by`) mod radix, for every digit.
int combined(const std::vector<int>& radices, int unit, int by, int sign) {
    int result = 0;
    int stride = 1;
    for (const int radix : radices) {
        const int digit = unit / stride % radix + sign * (by / stride % radix);
        result += (digit + radix) % radix * stride;
        stride *= radix;
    }
    return result;
}

/// What is left of the digits of all nodes, or ranks, above those within a unit of `inside`.
std::vector<int> digitsAbove(const std::vector<int>& radices, int inside) {
    std::vector<int> left;
    for (const int radix : radices) {
        const int common = std::gcd(radix, inside);
        inside /= common;
        if (radix / common > 1) left.push_back(radix / common);
    }
    return left;
}

std::vector<std::vector<int>> candidates(const Layout& layout, int unitRanks) {
    const int units = layout.ranks() / unitRanks;
    const int nodes = static_cast<int>(layout.nodes.size());
    const int unitNodes = unitRanks / static_cast<int>(layout.nodes.front().size());
    std::vector<std::vector<int>> all = {
        {units}, digitsAbove(radicesOf(nodes), std::max(unitNodes, 1)), radicesOf(units)};
    if ((units & (units - 1)) == 0) all.emplace_back(static_cast<std::size_t>(std::log2(units)), 2);
    return all;
}

// Units of whole nodes, one after the other.
bool isRegular(const Layout& layout, int unitRanks) {
    Rank next = 0;
    for (const std::vector<Rank>& node : layout.nodes) {
        if (node.size() != layout.nodes.front().size()) return false;
        for (const Rank rank : node) {
            if (rank != next++) return false;
        }
    }
    const auto ofNode = static_cast<int>(layout.nodes.front().size());
    return unitRanks > 0 && unitRanks % ofNode == 0 && next % unitRanks == 0 &&
           next / unitRanks > 1 && layout.summing.empty() && layout.shares.empty();
}

bool isLike(const Step& one, const Step& other, const Symmetry& symmetry, int unit) {
    if (one.verb != other.verb || one.channel != other.channel || one.after != other.after ||
        one.peers.size() != other.peers.size() || one.sources.size() != other.sources.size())
        return false;
    for (std::size_t index = 0; index < one.peers.size(); ++index) {
        if (symmetry.moved(one.peers[index], unit) != other.peers[index]) return false;
    }
    return true;
}

bool isLike(const Plan& one, const Plan& other, const Symmetry& symmetry, int unit) {
    if (one.steps.size() != other.steps.size()) return false;
    for (std::size_t index = 0; index < one.steps.size(); ++index) {
        if (!isLike(one.steps[index], other.steps[index], symmetry, unit)) return false;
        const double share = shareOfBlock(one, one.steps[index]);
        if (std::abs(share - shareOfBlock(other, other.steps[index])) > 1e-9 * share) return false;
    }
    return true;
}

/// Ranks of the first unit, and units, whose plans are compared.
struct Sample {
    std::set<Rank> ranks;
    std::set<int> units;

    Sample(const Symmetry& symmetry, int all) {
        const int count = all / symmetry.unitRanks;
        if (all <= kMostCompared) {
            for (Rank rank = 0; rank < symmetry.unitRanks; ++rank) ranks.insert(rank);
            for (int unit = 1; unit < count; ++unit) units.insert(unit);
            return;
        }
        ranks = {symmetry.unitRanks / 2, symmetry.unitRanks - 1};
        units = {1, count / 2, count - 1};
    }
};

Result<bool> isObeyed(const Symmetry& symmetry, const Layout& layout, PlanRequest request) {
    const Sample sample(symmetry, layout.ranks());
    for (const Rank rank : sample.ranks) {
        request.me = rank;
        const Result<Plan> first = makePlan(layout, request);
        if (!first.ok()) return first.status();
        for (const int unit : sample.units) {
            request.me = symmetry.moved(rank, unit);
            const Result<Plan> other = makePlan(layout, request);
            if (!other.ok()) return other.status();
            if (!isLike(*first, *other, symmetry, unit)) return false;
        }
    }
    return true;
}

}  // namespace

Rank Symmetry::seenFrom(Rank rank, Rank viewer) const {
    if (!isFolded()) return rank;
    const int unit = combined(radices, rank / unitRanks, viewer / unitRanks, -1);
    return unit * unitRanks + rank % unitRanks;
}

Rank Symmetry::moved(Rank rank, int unit) const {
    if (!isFolded()) return rank;
    return combined(radices, rank / unitRanks, unit, 1) * unitRanks + rank % unitRanks;
}

Result<Symmetry> symmetryOf(const Layout& layout, const PlanRequest& request, int unitRanks) {
    if (hasRoot(request.collective) || !isRegular(layout, unitRanks)) return Symmetry{};
    for (std::vector<int>& radices : candidates(layout, unitRanks)) {
        Symmetry symmetry{unitRanks, std::move(radices)};
        const Result<bool> obeyed = isObeyed(symmetry, layout, request);
        if (!obeyed.ok()) return obeyed.status();
        if (*obeyed) return symmetry;
    }
    return Symmetry{};
}

}  // namespace isthmus
