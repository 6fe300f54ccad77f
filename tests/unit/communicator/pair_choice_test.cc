#include "comm/communicator/pair_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace isthmus {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Names = std::vector<std::string>;
using Verdicts = std::vector<TransportVerdict>;

CallingCard cardWith(const Names& transports, std::uint64_t process) {
    CallingCard card;
    card.process = {7, process};
    card.place = "node" + std::to_string(process) + " pid 1";
    for (const std::string& name : transports) card.between.push_back({name, {}});
    return card;
}

std::vector<CallingCard> cardsWith(const std::vector<Names>& transports) {
    std::vector<CallingCard> cards;
    for (const Names& each : transports) cards.push_back(cardWith(each, cards.size()));
    return cards;
}

const Verdicts kBothGood = {{"ucx", ""}, {"tcp", ""}};
const Verdicts kUcxBad = {{"ucx", "no way there"}, {"tcp", ""}};

TEST(PairChoice, TakesWhatBothHaveInTheOrderOfTheLowerRank) {
    const auto cards = cardsWith({{"ucx", "ofi", "tcp"}, {"tcp", "ucx"}, {"tcp"}});
    EXPECT_THAT(commonTransports(cards, 0, 1), ElementsAre("ucx", "tcp"));
    EXPECT_THAT(commonTransports(cards, 1, 0), ElementsAre("ucx", "tcp"));
    EXPECT_THAT(commonTransports(cards, 2, 1), ElementsAre("tcp"));
    EXPECT_THAT(commonTransports(cardsWith({{"ucx"}, {"tcp"}}), 0, 1), IsEmpty());
}

TEST(PairChoice, IsTheFirstThatBothEndsProved) {
    const auto cards = cardsWith({{"ucx", "tcp"}, {"ucx", "tcp"}});
    EXPECT_EQ(choosePair(cards, 0, 1, kBothGood, kBothGood).transport, "ucx");
    EXPECT_THAT(choosePair(cards, 0, 1, kBothGood, kBothGood).rejected, IsEmpty());
    for (const auto& [mine, theirs] : {std::pair(kUcxBad, kBothGood), {kBothGood, kUcxBad}}) {
        const PairChoice choice = choosePair(cards, 0, 1, mine, theirs);
        EXPECT_EQ(choice.transport, "tcp");
        ASSERT_THAT(choice.rejected, SizeIs(1));
        EXPECT_EQ(choice.rejected[0].transport, "ucx");
        EXPECT_EQ(choice.rejected[0].why, "no way there");
    }
}

TEST(PairChoice, IsTheLastWhereNothingIsProved) {
    const auto cards = cardsWith({{"ucx", "tcp"}, {"ucx", "tcp"}});
    const Verdicts bad = {{"ucx", "no way there"}, {"tcp", "refused"}};
    EXPECT_EQ(choosePair(cards, 0, 1, bad, bad).transport, "tcp");
    EXPECT_EQ(choosePair(cards, 0, 1, {}, kBothGood).transport, "tcp") << "one end only tried";
    EXPECT_EQ(choosePair(cards, 0, 1, {}, {}).transport, "tcp");
    const auto one = cardsWith({{"ucx"}, {"ucx", "tcp"}});
    EXPECT_EQ(choosePair(one, 0, 1, {}, {}).transport, "ucx") << "the only one needs no trial";
}

TEST(PairChoice, IsTheSameAtBothEnds) {
    const std::vector<Names> offers = {{}, {"ucx"}, {"tcp"}, {"ucx", "tcp"}, {"tcp", "ucx"}};
    const std::vector<Verdicts> verdicts = {{}, kBothGood, kUcxBad, {{"tcp", ""}}};
    for (const Names& one : offers) {
        for (const Names& other : offers) {
            for (const Verdicts& byOne : verdicts) {
                for (const Verdicts& byOther : verdicts) {
                    const auto cards = cardsWith({one, other});
                    EXPECT_EQ(choosePair(cards, 0, 1, byOne, byOther).transport,
                              choosePair(cards, 1, 0, byOther, byOne).transport);
                }
            }
        }
    }
}

TEST(PairChoice, SaysWhoLacksWhat) {
    auto cards = cardsWith({{"ucx", "tcp"}, {"tcp"}, {"tcp"}});
    cards[2].missing.push_back({"ucx", "no library"});
    const auto unnamed = choosePair(cards, 0, 1, {}, {});
    ASSERT_THAT(unnamed.rejected, SizeIs(1));
    EXPECT_THAT(unnamed.rejected[0].why,
                AllOf(HasSubstr("rank 1 (node1 pid 1)"), HasSubstr("ISTHMUS_TRANSPORTS")));
    const auto missing = choosePair(cards, 0, 2, {}, {});
    ASSERT_THAT(missing.rejected, SizeIs(1));
    EXPECT_THAT(missing.rejected[0].why, AllOf(HasSubstr("rank 2"), HasSubstr("no library")));
}

TEST(PairChoice, NodesWithoutATransportInCommonAreNamed) {
    const auto cards = cardsWith({{"ucx", "tcp"}, {"ucx"}, {"tcp"}});
    EXPECT_TRUE(checkTransports(cards, {{0, 1, 2}}).ok()) << "one node needs none";
    EXPECT_TRUE(checkTransports(cards, {{0}, {1}}).ok());
    const Status none = checkTransports(cards, {{0}, {1}, {2}});
    EXPECT_EQ(none.code(), Status::Code::kConfiguration);
    EXPECT_THAT(none.what(), AllOf(HasSubstr("rank 1 (node1 pid 1) has ucx"),
                                   HasSubstr("rank 2 (node2 pid 1) has tcp")));
    EXPECT_TRUE(
        checkTransports(cardsWith({{"ucx", "tcp"}, {"tcp"}, {"tcp"}}), {{0}, {1}, {2}}).ok());
}

TEST(PairChoice, IsToldOnceForAllOfAKind) {
    const PairChoice good{"ucx", {}};
    const PairChoice fallen{"tcp", {{"ucx", "no library"}}};
    std::vector<WireUpTrial> trials(2);
    trials[0] = {1, "ucx", {}, 2e-6, 1e9};
    trials[1] = {2, "ucx", {}, 4e-6, 2e9};
    const auto lines = describeChoices({{1, good}, {2, good}, {3, fallen}, {5, fallen}}, trials);
    ASSERT_THAT(lines, SizeIs(2));
    EXPECT_FALSE(lines[0].isWarning);
    EXPECT_EQ(lines[0].text, "ucx with ranks 1, 2 (2.00-4.00 us, 1-2 GB/s)");
    EXPECT_TRUE(lines[1].isWarning);
    EXPECT_EQ(lines[1].text, "tcp with ranks 3, 5, not ucx: no library");
    EXPECT_THAT(describeChoices({{1, PairChoice{"tcp", {}}}}, {}), IsEmpty());
}

}  // namespace
}  // namespace isthmus
