#include "tests/support/layouts.hpp"

#include <algorithm>
#include <random>

namespace isthmus::test {

std::vector<NamedLayout> layoutsOf(int ranks) {
    std::vector<NamedLayout> layouts = {{"one node", {}}};
    if (ranks >= 2) layouts.push_back({"2 nodes", {}});
    if (ranks % 4 == 0 && ranks > 4) layouts.push_back({"4 nodes", {}});
    if (ranks >= 3) layouts.push_back({"round robin", {}});
    if (ranks >= 3) layouts.push_back({"3+2+1", {}});
    if (ranks >= 5) layouts.push_back({"8+1+1+1", {}});
    if (ranks >= 4) layouts.push_back({"random", {}});
    if (ranks % 4 == 0) layouts.push_back({"permuted", {}});
    std::mt19937_64 random(static_cast<std::uint64_t>(ranks));
    for (NamedLayout& layout : layouts) {
        for (int rank = 0; rank < ranks; ++rank) {
            int node = 0;
            if (layout.name == "2 nodes") node = 2 * rank / ranks;
            if (layout.name == "4 nodes") node = 4 * rank / ranks;
            if (layout.name == "permuted") node = (ranks == 4 ? 2 : 4) * rank / ranks;
            if (layout.name == "round robin") node = rank % 3;
            if (layout.name == "3+2+1") node = 2 * rank < ranks ? 0 : 6 * rank < 5 * ranks ? 1 : 2;
            if (layout.name == "8+1+1+1") node = rank < ranks - 3 ? 0 : rank - (ranks - 4);
            if (layout.name == "random") node = static_cast<int>(random() % 4);
            layout.nodeOfRank.push_back(node);
        }
        if (layout.name == "permuted") {
            std::shuffle(layout.nodeOfRank.begin(), layout.nodeOfRank.end(), random);
        }
    }
    return layouts;
}

}  // namespace isthmus::test
