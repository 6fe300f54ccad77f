#include <gtest/gtest.h>

#include "comm/communicator/inline_limit.hpp"
#include "comm/selector/select.hpp"

namespace isthmus {
namespace {

CallingCard cardOn(std::initializer_list<unsigned> maskBytes, int allowed = 1024) {
    CallingCard card;
    for (const unsigned each : maskBytes) card.cpuMask.push_back(std::byte(each));
    card.cpusAllowed = allowed;
    return card;
}

std::int64_t limitOf(const std::vector<CallingCard>& cards, const std::string& set = "") {
    const std::span<const Knob> tables[] = {kSelectorKnobs};
    Options options = Options::defaults(tables);
    if (!set.empty()) {
        EXPECT_TRUE(options.set("ISTHMUS_INLINE", set, "test").ok());
    }
    return inlineBytesFor(options, cards);
}

TEST(Processors, AreTheUnionOfWhatRanksMayUse) {
    EXPECT_EQ(processorsOf({cardOn({0x3}), cardOn({0x3})}), 2);
    EXPECT_EQ(processorsOf({cardOn({0x1}), cardOn({0x2}), cardOn({0, 0x80})}), 3);  // bound ranks
    EXPECT_EQ(processorsOf({cardOn({0xff}, 8), cardOn({0xff}, 8)}), 8);
    EXPECT_EQ(processorsOf({cardOn({0xff}, 3), cardOn({0xff}, 8)}), 3);  // a container's share
}

TEST(InlineLimit, IsLargerWhereRanksShareProcessors) {
    EXPECT_EQ(limitOf({cardOn({0x3}), cardOn({0x3})}), 8 << 10);
    EXPECT_EQ(limitOf({cardOn({0x3}), cardOn({0x3}), cardOn({0x3})}), 64 << 10);
    EXPECT_EQ(limitOf({cardOn({0x1}), cardOn({0x2})}), 8 << 10);
    EXPECT_EQ(limitOf({cardOn({0x1}), cardOn({0x1})}), 64 << 10);
    CallingCard crowded = cardOn({0x3});
    crowded.ranksOnNode = 4;  // two of four ranks make a communicator of their own
    EXPECT_EQ(limitOf({cardOn({0x3}), crowded}), 64 << 10);
}

TEST(InlineLimit, IsWhatTheEnvironmentSays) {
    EXPECT_EQ(limitOf({cardOn({0x1}), cardOn({0x1})}, "4K"), 4096);
    EXPECT_EQ(limitOf({cardOn({0x1}), cardOn({0x1})}, "0"), 0);
}

}  // namespace
}  // namespace isthmus
