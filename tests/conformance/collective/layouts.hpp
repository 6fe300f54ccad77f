#pragma once

#include <string>
#include <vector>

namespace isthmus::conformance {

struct NamedLayout {
    std::string name;
    std::vector<int> nodeOfRank;
};

/// One rank; one node; two nodes in blocks and round robin; nodes of unequal size.
inline const std::vector<NamedLayout> kLayouts = {
    {"W1", {0}},
    {"S2", {0, 0}},
    {"S4", {0, 0, 0, 0}},
    {"N2x1", {0, 1}},
    {"N2x2", {0, 0, 1, 1}},
    {"RR4", {0, 1, 0, 1}},
    {"U13", {0, 1, 1, 1}},
    {"U321", {0, 0, 0, 1, 1, 2}},
};

inline const std::vector<int>& nodesOf(const std::string& name) {
    for (const NamedLayout& layout : kLayouts) {
        if (layout.name == name) return layout.nodeOfRank;
    }
    return kLayouts.front().nodeOfRank;
}

}  // namespace isthmus::conformance
