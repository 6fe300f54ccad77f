#include "comm/algorithm/double_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Levels below `position`, every one of whose children says it is its parent.
int heightOf(TreeShape shape, int position, int size, int& met) {
    ++met;
    int height = 0;
    if (met > size) return height;  // a circle
    for (const int child : shape(position, size).children) {
        EXPECT_EQ(shape(child, size).parent, position);
        height = std::max(height, 1 + heightOf(shape, child, size, met));
    }
    return height;
}

int rootOf(TreeShape shape, int size) {
    int root = -1;
    for (int position = 0; position < size; ++position) {
        if (shape(position, size).parent >= 0) continue;
        EXPECT_EQ(root, -1) << "two roots of " << size;
        root = position;
    }
    return root;
}

// By hand, seven positions: the perfect tree, and its labels moved by one.
TEST(DoubleTree, OfSevenIsAsDrawn) {
    EXPECT_EQ(rootOf(firstTree, 7), 3);
    EXPECT_THAT(firstTree(3, 7).children, ElementsAre(1, 5));
    EXPECT_THAT(firstTree(5, 7).children, ElementsAre(4, 6));
    EXPECT_EQ(rootOf(secondTree, 7), 2);
    EXPECT_THAT(secondTree(2, 7).children, ElementsAre(0, 4));
    EXPECT_THAT(secondTree(0, 7).children, ElementsAre(6, 1));
    EXPECT_THAT(secondTree(5, 7).children, IsEmpty());
}

TEST(DoubleTree, SpansAllAndNobodyHasChildrenInBothTrees) {
    for (int size = 1; size <= 130; ++size) {
        const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(size))) - 1;
        for (const TreeShape shape : {firstTree, secondTree}) {
            int met = 0;
            EXPECT_EQ(heightOf(shape, rootOf(shape, size), size, met), levels) << size;
            EXPECT_EQ(met, size);
        }
        for (int position = 0; position < size; ++position) {
            const auto first = firstTree(position, size).children.size();
            const auto second = secondTree(position, size).children.size();
            EXPECT_LE(std::max(first, second), 2u);
            EXPECT_EQ(std::min(first, second), 0u) << position << " of " << size;
        }
    }
}

TEST(DoubleTree, HangsBelowPosition0WhenThatIsTheRoot) {
    for (int size = 2; size <= 130; ++size) {
        for (const TreeShape shape : {firstTreeFromRoot, secondTreeFromRoot}) {
            int met = 0;
            EXPECT_EQ(rootOf(shape, size), 0);
            EXPECT_EQ(shape(0, size).children.size(), 1u);
            heightOf(shape, 0, size, met);
            EXPECT_EQ(met, size);
        }
    }
}

}  // namespace
}  // namespace isthmus
