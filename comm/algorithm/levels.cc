#include "comm/algorithm/levels.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "comm/algorithm/chunks.hpp"
#include "comm/algorithm/fractions.hpp"

namespace isthmus {
namespace {

/// The unit of these nodes, grouped by Layout::racks[levels - 1] first.
Unit grouped(const Layout& layout, std::vector<int> nodes, std::size_t levels) {
    Unit unit{std::move(nodes), {}};
    if (unit.nodes.size() == 1) return unit;
    if (levels == 0) {
        for (const int node : unit.nodes) unit.parts.push_back({{node}, {}});
        return unit;
    }
    std::map<int, std::size_t> places;  // by number, in the order of their lowest nodes
    std::vector<std::vector<int>> groups;
    for (const int node : unit.nodes) {
        const int number = layout.racks[levels - 1][static_cast<std::size_t>(node)];
        const auto [place, isNew] = places.emplace(number, groups.size());
        if (isNew) groups.emplace_back();
        groups[place->second].push_back(node);
    }
    if (groups.size() == 1) return grouped(layout, std::move(unit.nodes), levels - 1);
    for (std::vector<int>& group : groups) {
        unit.parts.push_back(grouped(layout, std::move(group), levels - 1));
    }
    return unit;
}

void walk(const Unit& unit, int first, std::vector<int>& order) {
    if (unit.parts.empty()) return order.push_back(unit.nodes.front());
    const std::size_t parts = unit.parts.size();
    std::size_t begin = 0;
    for (std::size_t part = 0; part < parts; ++part) {
        if (unit.parts[part].has(first)) begin = part;
    }
    for (std::size_t hops = 0; hops < parts; ++hops) {
        walk(unit.parts[(begin + hops) % parts], first, order);
    }
}

void sortOnce(std::vector<Fraction>& cuts) {
    std::sort(cuts.begin(), cuts.end(), isLess);
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
}

}  // namespace

bool Unit::has(int node) const {
    return std::binary_search(nodes.begin(), nodes.end(), node);
}

const Unit& Unit::partWith(int node) const {
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [node](const Unit& each) { return each.has(node); });
    ISTHMUS_ASSERT(part != parts.end());
    return *part;
}

int Unit::height() const {
    int highest = -1;
    for (const Unit& part : parts) highest = std::max(highest, part.height());
    return highest + 1;
}

Unit Unit::of(const Layout& layout) {
    std::vector<int> all(layout.nodes.size());
    std::iota(all.begin(), all.end(), 0);
    return grouped(layout, std::move(all), layout.racks.size());
}

std::vector<int> nodesFrom(const Layout& layout, int first) {
    std::vector<int> order;
    walk(Unit::of(layout), first, order);
    return order;
}

Levels::Levels(const Layout& layout)
    : layout_(layout), whole_(Unit::of(layout)), grid_(carriersOf(whole_).cuts) {}

Rank Levels::Carriers::at(const Fraction& place) const {
    const auto after = std::upper_bound(cuts.begin(), cuts.end(), place, isLess);
    return ranks[static_cast<std::size_t>(after - cuts.begin() - 1)];
}

std::vector<Levels::Carriers> Levels::carriersOfParts(const Unit& unit,
                                                      std::vector<Fraction>& cuts) const {
    std::vector<Carriers> ofParts;
    for (const Unit& part : unit.parts) {
        const Carriers& each = ofParts.emplace_back(carriersOf(part));
        cuts.insert(cuts.end(), each.cuts.begin(), each.cuts.end());
    }
    sortOnce(cuts);
    return ofParts;
}

Levels::Carriers Levels::carriersOf(const Unit& unit) const {
    Carriers carriers;
    if (unit.parts.empty()) {
        carriers.ranks = layout_.nodes[static_cast<std::size_t>(unit.nodes.front())];
        const auto ranks = static_cast<std::int64_t>(carriers.ranks.size());
        for (std::int64_t rank = 0; rank <= ranks; ++rank) {
            carriers.cuts.push_back(reduced(rank, ranks));
        }
        return carriers;
    }
    std::vector<Fraction> cuts;
    const std::vector<Carriers> ofParts = carriersOfParts(unit, cuts);
    const int parts = static_cast<int>(ofParts.size());
    carriers.cuts = {{0, 1}};
    for (std::size_t stretch = 0; stretch + 1 < cuts.size(); ++stretch) {
        for (int part = 0; part < parts; ++part) {
            const Carriers& each = ofParts[static_cast<std::size_t>(part)];
            carriers.cuts.push_back(
                isthmus::between(cuts[stretch], cuts[stretch + 1], part + 1, parts));
            carriers.ranks.push_back(each.at(cuts[stretch]));
        }
    }
    return carriers;
}

Chunks Levels::between(const Fraction& from, const Fraction& to) const {
    const auto place = [&](const Fraction& cut) {
        return static_cast<int>(std::lower_bound(grid_.begin(), grid_.end(), cut, isLess) -
                                grid_.begin());
    };
    return run(place(from), place(to) - place(from));
}

std::vector<Chunks> Levels::sharesOf(int node) const {
    const auto ranks =
        static_cast<std::int64_t>(layout_.nodes[static_cast<std::size_t>(node)].size());
    std::vector<Chunks> shares;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        shares.push_back(between(reduced(rank, ranks), reduced(rank + 1, ranks)));
    }
    return shares;
}

std::vector<Rail> Levels::railsIn(const Unit& unit, Rank me) const {
    std::vector<Fraction> cuts;
    const std::vector<Carriers> ofParts = carriersOfParts(unit, cuts);
    const int parts = static_cast<int>(ofParts.size());
    std::vector<Rail> rails;
    for (std::size_t stretch = 0; stretch + 1 < cuts.size(); ++stretch) {
        const Fraction& from = cuts[stretch];
        const Fraction& to = cuts[stretch + 1];
        Rail rail;
        for (int part = 0; part < parts; ++part) {
            rail.ranks.push_back(ofParts[static_cast<std::size_t>(part)].at(from));
            rail.pieces.push_back(between(isthmus::between(from, to, part, parts),
                                          isthmus::between(from, to, part + 1, parts)));
        }
        const bool isMine = std::find(rail.ranks.begin(), rail.ranks.end(), me) != rail.ranks.end();
        if (isMine) rails.push_back(std::move(rail));
    }
    return rails;
}

std::vector<std::vector<Rail>> Levels::railsOf(Rank me) const {
    const int node = layout_.nodeOf(me);
    std::vector<std::vector<Rail>> levels;
    const Unit* unit = &whole_;
    while (!unit->parts.empty()) {
        levels.push_back(railsIn(*unit, me));
        unit = &unit->partWith(node);
    }
    std::reverse(levels.begin(), levels.end());
    return levels;
}

BlockWays::Step BlockWays::towardsHome(int node, Rank block, int home) const {
    return towards(whole_, node, home, block);
}

BlockWays::Step BlockWays::towards(const Unit& unit, int node, int target, Rank block) const {
    const Unit& mine = unit.partWith(node);
    if (mine.has(target)) return towards(mine, node, target, block);
    const int gate = gateOf(mine, block);
    if (gate == node) return {target, unit.height() - 1};
    return towards(mine, node, gate, block);
}

// Where a node is what all of a unit make for, the gates of the unit's other parts step to it.
std::vector<BlockWays::Step> BlockWays::comingTo(int node, Rank block, int home) const {
    std::vector<Step> steps;
    int target = home;
    for (const Unit* unit = &whole_; !unit->parts.empty();) {
        const Unit& mine = unit->partWith(node);
        for (const Unit& part : unit->parts) {
            if (target == node && &part != &mine)
                steps.push_back({gateOf(part, block), unit->height() - 1});
        }
        if (!mine.has(target)) target = gateOf(mine, block);
        unit = &mine;
    }
    return steps;
}

int BlockWays::gateOf(const Unit& unit, Rank block) const {
    std::size_t before = 0;
    std::size_t inside = 0;
    for (const int node : unit.nodes) {
        const std::vector<Rank>& ranks = layout_.nodes[static_cast<std::size_t>(node)];
        before += static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), block) -
                                           ranks.begin());
        inside += ranks.size();
    }
    const std::size_t outsidersBefore = static_cast<std::size_t>(block) - before;
    return unit.nodes[outsidersBefore * unit.nodes.size() / (ranks_ - inside)];
}

}  // namespace isthmus
