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
    EXPECT_EQ(processorsOf({cardOn({}), cardOn({})}), 2);                // nobody knows
}

TEST(Caches, AreOfTheProcessorsThatRanksHaveTogether) {
    EXPECT_EQ(cacheBytesFor(2, std::size_t{260} << 20), std::size_t{16} << 20);
    EXPECT_EQ(cacheBytesFor(8, std::size_t{32} << 20), std::size_t{32} << 20);
    // Three ranks bound to a core each have those of three.
    EXPECT_EQ(cacheBytesFor(processorsOf({cardOn({0x1}), cardOn({0x2}), cardOn({0x4})}),
                            std::size_t{260} << 20),
              std::size_t{24} << 20);
}

TEST(InlineLimit, IsLargerWhereRanksShareProcessors) {
    EXPECT_EQ(limitOf({cardOn({0x3}), cardOn({0x3})}), 8 << 10);
    EXPECT_EQ(limitOf({cardOn({0x3}), cardOn({0x3}), cardOn({0x3})}), 64 << 10);
    EXPECT_EQ(limitOf({cardOn({0x1}), cardOn({0x2})}), 8 << 10);
    EXPECT_EQ(limitOf({cardOn({0x1}), cardOn({0x1})}), 64 << 10);
    CallingCard crowded = cardOn({0x3});
    crowded.sharesProcessors = true;  // two of four ranks make a communicator of their own
    EXPECT_EQ(limitOf({cardOn({0x3}), crowded}), 64 << 10);
}

TEST(InlineLimit, IsWhatTheEnvironmentSays) {
    EXPECT_EQ(limitOf({cardOn({0x1}), cardOn({0x1})}, "4K"), 4096);
    EXPECT_EQ(limitOf({cardOn({0x1}), cardOn({0x1})}, "0"), 0);
}

}  // namespace
}  // namespace isthmus
