// What many ranks may cost, where the limit is no matter of the machine's speed.
#include "tests/support/many_ranks.hpp"

#include <gtest/gtest.h>

#include "tests/support/sanitized.hpp"

namespace isthmus::test {
namespace {

using Wires = LocalJob::Wires;

class ManyRanks : public testing::TestWithParam<Wires> {};

INSTANTIATE_TEST_SUITE_P(Over, ManyRanks, testing::Values(Wires::kInproc, Wires::kShm, Wires::kTcp),
                         [](const auto& test) {
                             return test.param == Wires::kInproc ? "Calls"
                                    : test.param == Wires::kShm  ? "Shm"
                                                                 : "Tcp";
                         });

TEST_P(ManyRanks, TakeLessThan64KilobytesForEachPair) {
    if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes more memory than the pairs";
    const double bytes = bytesOfPair(64, GetParam());
    EXPECT_GT(bytes, 0);
    EXPECT_LT(bytes, 64 << 10);
}

}  // namespace
}  // namespace isthmus::test
