#include "comm/algorithm/double_tree.hpp"

#include <bit>

namespace isthmus {
namespace {

/// Above a label in the endless tree in whose order labels are 1, 2, 3, ...: odd labels are leaves,
/// and a label with k zeros at its end is k levels above them.
int above(int label) {
    const int unit = label & -label;
    return (label & (2 * unit)) != 0 ? label - unit : label + unit;
}

/// The same tree of labels 1 to `size`: what lies above a label that is missing takes its place.
TreePlace inOrder(int label, int size) {
    TreePlace place{.parent = -1, .children = {}};
    const int root = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
    if (label != root) {
        place.parent = above(label);
        while (place.parent > size) place.parent = above(place.parent);
    }
    const int unit = label & -label;
    if (unit > 1) place.children.push_back(label - unit / 2);
    for (int step = unit / 2; step > 0; step /= 2) {
        if (label + step > size) continue;
        place.children.push_back(label + step);
        break;
    }
    return place;
}

/// Labels of the second tree: mirrored, or moved by one when mirroring would keep odd labels odd.
int secondLabel(int label, int size) {
    return size % 2 == 0 ? size + 1 - label : label % size + 1;
}

int firstLabel(int secondLabel, int size) {
    if (size % 2 == 0) return size + 1 - secondLabel;
    return secondLabel == 1 ? size : secondLabel - 1;
}

TreePlace inSecondOrder(int label, int size) {
    TreePlace place = inOrder(secondLabel(label, size), size);
    if (place.parent > 0) place.parent = firstLabel(place.parent, size);
    for (int& child : place.children) child = firstLabel(child, size);
    return place;
}

/// Labels become positions, which count from 0.
TreePlace overAll(TreePlace (*order)(int label, int size), int position, int size) {
    TreePlace place = order(position + 1, size);
    if (place.parent > 0) --place.parent;
    for (int& child : place.children) --child;
    return place;
}

/// Labels are positions; the root of the tree is the only child of position 0.
TreePlace fromRoot(TreePlace (*order)(int label, int size), int position, int size) {
    if (position > 0) {
        TreePlace place = order(position, size - 1);
        if (place.parent < 0) place.parent = 0;
        return place;
    }
    TreePlace top{.parent = -1, .children = {}};
    for (int label = 1; label < size; ++label) {
        if (order(label, size - 1).parent < 0) top.children.push_back(label);
    }
    return top;
}

}  // namespace

TreePlace firstTree(int position, int size) {
    return overAll(inOrder, position, size);
}

TreePlace secondTree(int position, int size) {
    return overAll(inSecondOrder, position, size);
}

TreePlace firstTreeFromRoot(int position, int size) {
    return fromRoot(inOrder, position, size);
}

TreePlace secondTreeFromRoot(int position, int size) {
    return fromRoot(inSecondOrder, position, size);
}

void doubleTreeAllReduce(PlanBuilder& plan, const Group& group, const Pieces& pieces,
                         const Place& from, const Place& to, Completes completes) {
    treeReduce(plan, group, firstTree, from(pieces[0]), to(pieces[0]), completes);
    treeReduce(plan, group, secondTree, from(pieces[1]), to(pieces[1]), completes);
    treeBroadcast(plan, group, firstTree, to(pieces[0]), to(pieces[0]));
    treeBroadcast(plan, group, secondTree, to(pieces[1]), to(pieces[1]));
}

}  // namespace isthmus
