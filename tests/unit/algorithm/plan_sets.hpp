#pragma once

#include <string>
#include <vector>

#include "comm/algorithm/catalogue.hpp"

namespace isthmus {

/// How the nodes' own choices of mapping may fall out.
enum class Choice { kDirect, kStaged, kMixed };

inline const std::vector<Layout>& testLayouts() {
    static const std::vector<Layout> layouts = {
        Layout::of({0}),
        Layout::of({0, 0, 0}),
        Layout::of({0, 0, 0, 0, 0}),
        Layout::of({0, 1}),
        Layout::of({0, 0, 1, 1}),
        Layout::of({0, 1, 0, 1, 0, 1}),                 // round robin
        Layout::of({0, 0, 0, 1, 1, 2}),                 // 3 + 2 + 1
        Layout::of({0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}),  // 8 + 1 + 1 + 1
        Layout::of({2, 0, 1, 0, 2, 2, 0}),              // scattered
    };
    return layouts;
}

inline std::vector<Choice> choicesOf(const Algorithm& entry) {
    if (entry.mappings.size() == 1) return {Choice::kDirect};
    if (!entry.usesLevels) return {Choice::kDirect, Choice::kStaged};
    return {Choice::kDirect, Choice::kStaged, Choice::kMixed};
}

inline Mapping mappingOf(const Algorithm& entry, Choice choice, int node) {
    if (entry.mappings.size() == 1) return entry.mappings.front();
    const bool isDirect = choice == Choice::kDirect || (choice == Choice::kMixed && node % 2 == 0);
    return isDirect ? Mapping::kAll : Mapping::kShared;
}

/// All ranks' plans, none when one could not be made.
inline std::vector<Plan> plansOf(const Algorithm& entry, const Layout& layout, Rank root,
                                 Choice choice) {
    std::vector<Plan> plans;
    for (Rank rank = 0; rank < layout.ranks(); ++rank) {
        const Mapping mapping = mappingOf(entry, choice, layout.nodeOf(rank));
        Result<Plan> plan =
            makePlan(layout, {entry.collective, rank, root, mapping, std::string(entry.name)});
        if (!plan.ok()) return {};
        plans.push_back(*plan);
    }
    return plans;
}

inline std::string textOf(const Algorithm& entry, const Layout& layout, Rank root) {
    std::string text = std::string(nameOf(entry.collective)) + " " + std::string(entry.name);
    text += ", nodes of";
    for (const auto& node : layout.nodes) text.append(" ").append(std::to_string(node.size()));
    return text.append(", root ").append(std::to_string(root));
}

}  // namespace isthmus
