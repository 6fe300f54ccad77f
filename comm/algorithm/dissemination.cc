#include "comm/algorithm/dissemination.hpp"

namespace isthmus {

void disseminate(PlanBuilder& plan, const Group& group) {
    for (int distance = 1; distance < group.size(); distance *= 2) {
        const Rank told = group[group.me() + distance];
        const Rank heard = group[group.me() - distance];
        plan.signal({&told, 1});
        plan.wait({&heard, 1});
    }
}

}  // namespace isthmus
