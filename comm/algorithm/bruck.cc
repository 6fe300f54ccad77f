#include "comm/algorithm/bruck.hpp"

#include <algorithm>

namespace isthmus {
namespace {

Chunks piecesFrom(const Group& group, const Pieces& pieces, int first, int amount) {
    Chunks chunks;
    for (int offset = 0; offset < amount; ++offset) {
        const Chunks& piece = pieces[static_cast<std::size_t>(group.wrap(first + offset))];
        chunks.insert(chunks.end(), piece.begin(), piece.end());
    }
    return chunks;
}

}  // namespace

void bruckAllGather(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Place& at,
                    int radix) {
    const int me = group.me();
    for (int have = 1; have < group.size(); have *= radix) {
        for (int digit = 1; digit < radix && digit * have < group.size(); ++digit) {
            const int step = digit * have;
            const int moved = std::min(have, group.size() - step);
            plan.send(group[me - step], at(piecesFrom(group, pieces, me, moved)));
            plan.recv(group[me + step], at(piecesFrom(group, pieces, me + step, moved)));
        }
    }
}

}  // namespace isthmus
