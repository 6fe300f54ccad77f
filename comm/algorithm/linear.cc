#include "comm/algorithm/linear.hpp"

namespace isthmus {

void linearGather(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Slice& own,
                  const Place& to) {
    if (group.me() != 0) return plan.send(group[0], own);
    for (int position = 1; position < group.size(); ++position) {
        plan.recv(group[position], to(pieces[static_cast<std::size_t>(position)]));
    }
}

void linearScatter(PlanBuilder& plan, const Group& group, const Pieces& pieces, const Place& from,
                   const Slice& own) {
    if (group.me() != 0) return plan.recv(group[0], own);
    for (int position = 1; position < group.size(); ++position) {
        plan.send(group[position], from(pieces[static_cast<std::size_t>(position)]));
    }
}

}  // namespace isthmus
