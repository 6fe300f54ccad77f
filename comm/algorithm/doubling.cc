#include "comm/algorithm/doubling.hpp"

#include <bit>

#include "comm/algorithm/chunks.hpp"

namespace isthmus {

void doublingAllReduce(PlanBuilder& plan, const Group& group, const Chunks& chunks,
                       const Place& from, const Place& to, Completes completes) {
    const int me = group.me();
    const int full = static_cast<int>(std::bit_floor(static_cast<unsigned>(group.size())));
    const int extra = group.size() - full;
    const Slice result = to(chunks);
    if (group.size() == 1) return plan.copy(result, from(chunks), completes);
    if (me >= full) {
        plan.send(group[me - full], from(chunks));
        plan.recv(group[me - full], result);
        return;
    }
    Slice have = from(chunks);
    if (me < extra) {
        const Slice arrived = scratchLike(plan, have);
        plan.recv(group[me + full], arrived);
        plan.reduce(result, {have, arrived}, Completes::kNo);
        have = result;
    }
    for (int distance = 1; distance < full; distance *= 2) {
        const int partner = me ^ distance;
        const Slice arrived = scratchLike(plan, have);
        plan.send(group[partner], have);
        plan.recv(group[partner], arrived);
        const bool isFirst = me < partner;
        plan.reduce(result, {isFirst ? have : arrived, isFirst ? arrived : have},
                    2 * distance == full ? completes : Completes::kNo);
        have = result;
    }
    if (me < extra) plan.send(group[me + full], result);
}

}  // namespace isthmus
