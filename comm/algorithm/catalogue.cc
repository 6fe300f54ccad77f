#include "comm/algorithm/catalogue.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/entries.hpp"

namespace isthmus {
namespace {

std::string knownNames(Collective collective) {
    std::string names;
    for (const Algorithm& entry : catalogue()) {
        if (entry.collective != collective) continue;
        if (!names.empty()) names += ", ";
        names += entry.name;
    }
    return names;
}

/// Every rank once, nodes by lowest rank, ranks ascending.
bool isOrderly(const Layout& layout) {
    const int ranks = layout.ranks();  // it counts
    std::vector<bool> isSeen(static_cast<std::size_t>(ranks), false);
    Rank lowest = -1;
    for (const std::vector<Rank>& members : layout.nodes) {
        if (members.empty() || members.front() <= lowest) return false;
        lowest = members.front();
        Rank before = -1;
        for (const Rank rank : members) {
            if (rank <= before || rank >= ranks) return false;
            if (isSeen[static_cast<std::size_t>(rank)]) return false;
            isSeen[static_cast<std::size_t>(rank)] = true;
            before = rank;
        }
    }
    return ranks > 0;
}

/// None, or one for each node, that together are something.
bool areSharesPlausible(const Layout& layout) {
    if (layout.shares.empty()) return true;
    const bool isNegative = std::any_of(layout.shares.begin(), layout.shares.end(),
                                        [](int share) { return share < 0; });
    const auto sum = std::accumulate(layout.shares.begin(), layout.shares.end(), std::int64_t{0});
    return layout.shares.size() == layout.nodes.size() && !isNegative && sum > 0;
}

/// A number for each node, and nodes of one unit in one of the next too.
bool areRacksPlausible(const Layout& layout) {
    for (std::size_t level = 0; level < layout.racks.size(); ++level) {
        if (layout.racks[level].size() != layout.nodes.size()) return false;
        if (level == 0) continue;
        std::map<int, int> outer;
        for (std::size_t node = 0; node < layout.nodes.size(); ++node) {
            const int row = layout.racks[level][node];
            if (outer.emplace(layout.racks[level - 1][node], row).first->second != row)
                return false;
        }
    }
    return true;
}

/// Ascending, some ranks but not all.
bool isSummingPlausible(const Layout& layout) {
    const std::vector<Rank>& summing = layout.summing;
    if (summing.empty()) return true;
    const bool isAscending =
        std::adjacent_find(summing.begin(), summing.end(), std::greater_equal<>()) == summing.end();
    return isAscending && summing.front() >= 0 && summing.back() < layout.ranks() &&
           static_cast<int>(summing.size()) < layout.ranks();
}

Status invalid(const PlanRequest& request, const std::string& what) {
    return Status::invalidArgument(std::string(nameOf(request.collective)) + " \"" +
                                   request.algorithm + "\": " + what);
}

Status checkRequest(const Layout& layout, const PlanRequest& request, const Entry* entry) {
    if (entry == nullptr) {
        return invalid(request, "unknown algorithm, known are " + knownNames(request.collective));
    }
    if (!isOrderly(layout)) {
        return invalid(request, "layout must have every rank once, in ascending order");
    }
    if (!areSharesPlausible(layout)) {
        return invalid(request, "shares must be one for each node, none negative, some positive");
    }
    if (!isSummingPlausible(layout)) {
        return invalid(request, "ranks that only add must be some of all, in ascending order");
    }
    if (!areRacksPlausible(layout)) {
        return invalid(request, "racks must be one for each node, each in one row");
    }
    const auto isRank = [&](Rank rank) { return rank >= 0 && rank < layout.ranks(); };
    if (!isRank(request.me) || !isRank(request.root)) {
        return invalid(request, "rank " + std::to_string(request.me) + ", root " +
                                    std::to_string(request.root) + " of " +
                                    std::to_string(layout.ranks()));
    }
    if (!entry->facts.fits(layout)) {
        return invalid(request, "does not fit " + std::to_string(layout.nodes.size()) + " nodes" +
                                    (layout.summing.empty() ? "" : " with ranks that only add"));
    }
    for (const Mapping mapping : entry->facts.mappings) {
        if (mapping == request.mapping) return {};
    }
    return invalid(request,
                   "no plan for mapping " + std::to_string(static_cast<int>(request.mapping)));
}

/// A world of one: whatever the algorithm, the result is the input.
void writeAlone(PlanBuilder& plan, Collective collective) {
    if (collective == Collective::kBarrier) return;
    plan.copy(plan.output()({0}), plan.input()({0}),
              reduces(collective) ? Completes::kYes : Completes::kNo);
}

}  // namespace

const std::vector<Algorithm>& catalogue() {
    static const std::vector<Algorithm> all = [] {
        std::vector<Algorithm> facts;
        for (const Entry& entry : entries()) facts.push_back(entry.facts);
        return facts;
    }();
    return all;
}

const Algorithm* findAlgorithm(Collective collective, std::string_view name) {
    for (const Algorithm& entry : catalogue()) {
        if (entry.collective == collective && entry.name == name) return &entry;
    }
    return nullptr;
}

Result<Plan> makePlan(const Layout& layout, const PlanRequest& request) {
    const Entry* entry = findEntry(request.collective, request.algorithm);
    ISTHMUS_TRY(checkRequest(layout, request, entry));
    const bool isAlone = layout.ranks() == 1;
    const Scene scene(layout, request.me, hasRoot(request.collective) ? request.root : 0);
    PlanBuilder plan(request.collective, request.me, layout.ranks(), scene.root,
                     isAlone ? Chunking{} : entry->chunking(layout), scene.nodeOf, request.mapping);
    plan.setAlgorithm(request.algorithm);
    if (request.collective == Collective::kAllReduce) plan.setSumming(layout.summing);
    if (isAlone) {
        writeAlone(plan, request.collective);
    } else {
        entry->write(plan, scene);
    }
    return plan.finish();
}

}  // namespace isthmus
