#pragma once

#include <string>
#include <vector>

namespace isthmus::test {

struct NamedLayout {
    std::string name;
    std::vector<int> nodeOfRank;
};

/// Layouts of `ranks` ranks: one node, 2 nodes, sizes as 3+2+1, one big node and three single ranks
/// (8+1+1+1), round robin over three nodes, random. Those that need more ranks are left out.
std::vector<NamedLayout> layoutsOf(int ranks);

}  // namespace isthmus::test
