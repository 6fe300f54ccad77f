#include "comm/algorithm/tree.hpp"

#include "comm/algorithm/chunks.hpp"

namespace isthmus {

TreePlace chain(int position, int size) {
    TreePlace place{.parent = position - 1, .children = {}};
    if (position + 1 < size) place.children.push_back(position + 1);
    return place;
}

TreePlace binomial(int position, int size) {
    TreePlace place;
    int distance = 1;
    for (; distance < size && (position & distance) == 0; distance *= 2) {
    }
    place.parent = position - distance;
    for (distance /= 2; distance > 0; distance /= 2) {  // the largest subtree first
        if (position + distance < size) place.children.push_back(position + distance);
    }
    return place;
}

void treeBroadcast(PlanBuilder& plan, const Group& group, TreeShape shape, const Slice& from,
                   const Slice& to) {
    const TreePlace place = shape(group.me(), group.size());
    const bool isRoot = place.parent < 0;
    if (!isRoot) plan.recv(group[place.parent], to);
    for (const int child : place.children) plan.send(group[child], isRoot ? from : to);
}

void treeReduce(PlanBuilder& plan, const Group& group, TreeShape shape, const Slice& own,
                const Slice& result, Completes completes) {
    const TreePlace place = shape(group.me(), group.size());
    const bool isRoot = place.parent < 0;
    std::vector<Slice> terms;
    for (const int child : place.children) {
        terms.push_back(scratchLike(plan, own));
        plan.recv(group[child], terms.back());
    }
    terms.push_back(own);
    if (isRoot) return combine(plan, result, terms, completes);
    if (terms.size() > 1) plan.reduce(terms.front(), terms, Completes::kNo);
    plan.send(group[place.parent], terms.front());
}

}  // namespace isthmus
