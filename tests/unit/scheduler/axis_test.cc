#include "scheduler/axis.hpp"

#include <gtest/gtest.h>

namespace isthmus::scheduler {
namespace {

TEST(Axis, HasOneNameBothWays) {
    for (const Axis axis : kAxes) {
        const Result<Axis> found = axisNamed(nameOf(axis));
        ASSERT_TRUE(found.ok());
        EXPECT_EQ(*found, axis);
    }
    EXPECT_EQ(axisNamed("tenser").status().what(),
              "unknown axis \"tenser\"; known: tensor, context, expert, data, pipe");
}

TEST(Axis, DegreesMultiply) {
    Degrees degrees(1);
    EXPECT_EQ(textOf(degrees), "one rank");
    degrees[Axis::kTensor] = 2;
    degrees[Axis::kPipe] = 3;
    EXPECT_EQ(ranksOf(degrees), 6);
    EXPECT_EQ(textOf(degrees), "tensor 2, pipe 3");
}

}  // namespace
}  // namespace isthmus::scheduler
