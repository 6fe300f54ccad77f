#include "comm/base/bit_rate.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(BitRates, AreDecimalWithAUnit) {
    EXPECT_EQ(bitsPerSecondOf("10gbit"), 1e10);
    EXPECT_EQ(bitsPerSecondOf("2.5gbit"), 2.5e9);
    EXPECT_EQ(bitsPerSecondOf("800kbit"), 8e5);
    EXPECT_EQ(bitsPerSecondOf("9600bit"), 9600);
    for (const char* const wrong : {"", "10", "gbit", "10 gbit", "-1gbit", "0gbit", "1e3mbit",
                                    "10Gbit", "nangbit", "10gbits"})
        EXPECT_FALSE(bitsPerSecondOf(wrong)) << wrong;
}

}  // namespace
}  // namespace isthmus
