#include <algorithm>
#include <map>

#include "comm/base/digest.hpp"
#include "comm/proof/happens_before.hpp"
#include "comm/proof/mutate.hpp"
#include "comm/proof/prove.hpp"
#include "comm/proof/symbolic_state.hpp"

namespace isthmus {
namespace {

void add(Digest& digest, const Slice& slice) {
    digest.add(slice.size());
    for (const Location& location : slice) {
        digest.add(location.rank).add(location.buffer).add(location.chunk);
    }
}

/// A step as its content, its number among those to each peer, and what it comes after.
std::vector<std::uint64_t> shapeOf(const Plan& plan) {
    std::vector<std::uint64_t> steps;
    std::map<std::tuple<Verb, Rank, int>, int> counts;
    for (const Step& step : plan.steps) {
        Digest digest;
        digest.add(step.verb).add(step.channel).add(step.completes);
        add(digest, step.target);
        digest.add(step.sources.size());
        for (const Slice& source : step.sources) add(digest, source);
        for (const Rank peer : step.peers) {
            digest.add(peer).add(counts[{step.verb, peer, step.channel}]++);
        }
        std::vector<std::uint64_t> after;
        for (const int before : step.after)
            after.push_back(steps[static_cast<std::size_t>(before)]);
        std::sort(after.begin(), after.end());
        for (const std::uint64_t before : after) digest.add(before);
        steps.push_back(digest.value());
    }
    std::sort(steps.begin(), steps.end());
    return steps;
}

/// One touch of one location.
struct Access {
    std::size_t name;
    int step;
    bool writes;

    auto operator<=>(const Access&) const = default;
};

std::vector<Access> accessesOf(const Matching& matching, const LocationNames& names) {
    std::vector<Access> accesses;
    for (int id = 0; id < matching.size(); ++id) {
        const Step& step = *matching.steps[static_cast<std::size_t>(id)];
        const auto isOntoItself = [&](std::size_t i) {
            return step.verb == Verb::kCopy &&
                   names.of(step.target[i]) == names.of(step.sources[0][i]);
        };
        for (std::size_t i = 0; i < step.target.size(); ++i) {
            if (!isOntoItself(i)) accesses.push_back({names.of(step.target[i]), id, true});
        }
        for (const Slice& source : step.sources) {
            for (std::size_t i = 0; i < source.size(); ++i) {
                if (!isOntoItself(i)) accesses.push_back({names.of(source[i]), id, false});
            }
        }
    }
    std::sort(accesses.begin(), accesses.end());
    return accesses;
}

bool areOrdered(const std::vector<Access>& accesses, const HappensBefore& before) {
    for (std::size_t i = 0; i < accesses.size(); ++i) {
        for (std::size_t j = i + 1; j < accesses.size(); ++j) {
            const Access& a = accesses[i];
            const Access& b = accesses[j];
            if (a.name != b.name) break;
            if (a.step == b.step || (!a.writes && !b.writes)) continue;
            if (before.isDoneBefore(a.step, postedOf(b.step))) continue;
            if (!before.isDoneBefore(b.step, postedOf(a.step))) return false;
        }
    }
    return true;
}

}  // namespace

bool isEdgeImplied(const std::vector<Plan>& plans, const MutationSite& site) {
    const auto rank = static_cast<std::size_t>(site.rank);
    const Step& step = plans[rank].steps[static_cast<std::size_t>(site.step)];
    const int before = step.after[static_cast<std::size_t>(site.index)];
    std::mt19937_64 random;
    const auto without = mutated(plans, site, random);
    const Result<Matching> matching = match(*without);
    if (!matching.ok()) return false;
    const HappensBefore order(*matching, static_cast<int>(plans.size()));
    const int first = matching->firstOf[rank];
    return order.isFreeOfDeadlock() &&
           order.isDoneBefore(first + before, postedOf(first + site.step));
}

bool haveSameShape(const std::vector<Plan>& a, const std::vector<Plan>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Plan& x, const Plan& y) { return shapeOf(x) == shapeOf(y); });
}

bool areConflictsOrdered(const std::vector<Plan>& plans) {
    const Result<Matching> matching = match(plans);
    if (!matching.ok()) return false;
    const HappensBefore before(*matching, static_cast<int>(plans.size()));
    if (!before.isFreeOfDeadlock()) return false;
    const std::vector<bool> nobody(plans.size(), false);
    const std::vector<bool> all = mayRunInPlace(plans);
    if (!areOrdered(accessesOf(*matching, LocationNames(plans, nobody)), before)) return false;
    return areOrdered(accessesOf(*matching, LocationNames(plans, all)), before);
}

}  // namespace isthmus
