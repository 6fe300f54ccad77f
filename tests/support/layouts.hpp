#pragma once

#include <string>
#include <vector>

namespace isthmus::test {

struct NamedLayout {
    std::string name;
    std::vector<int> nodeOfRank;
};

/// Layouts of `ranks` ranks: one node, 2 nodes (2x2, 2x8), 4 nodes (4x4), sizes as 3+2+1, one big
/// node and three single ranks (8+1+1+1), round robin over three nodes, random, and a random
/// permutation of equal nodes. Those that need more ranks, or multiples of 4, are left out.
std::vector<NamedLayout> layoutsOf(int ranks);

}  // namespace isthmus::test
