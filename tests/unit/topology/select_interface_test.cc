#include "topology/discover/select_interface.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

NetDevice device(std::string name, std::vector<NetAddress> addresses) {
    NetDevice made;
    made.name = std::move(name);
    made.addresses = std::move(addresses);
    made.isUp = true;
    made.isVirtual = true;
    return made;
}

std::vector<NetDevice> node() {
    auto lo = device("lo", {{"127.0.0.1", 8, false, false}, {"::1", 128, true, false}});
    lo.isLoopback = true;
    auto card = device("va0", {{"10.77.0.1", 24, false, false},
                               {"fd77::1", 64, true, false},
                               {"fe80::1%va0", 64, true, true}});
    card.isVirtual = false;
    card.bitsPerSecond = Fact<std::int64_t>::reported(1'000'000'000, "test");
    return {device("dummy0", {{"192.168.9.1", 24, false, false}}), lo, card,
            device("va0.7", {{"10.78.0.1", 24, false, false}}), device("bare0", {})};
}

using Choices = std::vector<InterfaceChoice>;

Choices chosen(std::string_view wish, const InterfaceContext& context = {"10.77.0.1", true}) {
    const auto choices = selectInterfaces(node(), wish, context);
    EXPECT_TRUE(choices.ok()) << wish << ": " << choices.status().what();
    return choices.ok() ? *choices : Choices{};
}

const Choices kCard = {{"va0", "10.77.0.1"}};
const Choices kTagged = {{"va0.7", "10.78.0.1"}};

TEST(SelectInterface, AName) {  // BOOT-02
    EXPECT_EQ(chosen("va0"), kCard) << "and not va0.7, which only starts so";
    EXPECT_EQ(chosen("=va0"), kCard);
    EXPECT_EQ(chosen("va0.7"), kTagged);
}

TEST(SelectInterface, AStartOfNamesAndAList) {
    EXPECT_EQ(chosen("va"), (Choices{{"va0", "10.77.0.1"}, {"va0.7", "10.78.0.1"}}));
    EXPECT_EQ(chosen("va0.7,va0"), (Choices{{"va0.7", "10.78.0.1"}, {"va0", "10.77.0.1"}}));
    EXPECT_EQ(chosen("va0,va0"), kCard);
}

TEST(SelectInterface, AnAddressOrANetwork) {  // BOOT-02
    EXPECT_EQ(chosen("10.77.0.1"), kCard);
    EXPECT_EQ(chosen("10.77.0.0/24"), kCard);
    EXPECT_EQ(chosen("10.78.0.0/16"), kTagged);
    EXPECT_EQ(chosen("fd77::/64"), (Choices{{"va0", "fd77::1"}}));
    EXPECT_EQ(chosen("[fd77::1]"), (Choices{{"va0", "fd77::1"}}));
    EXPECT_EQ(chosen("fe80::1%va0"), (Choices{{"va0", "fe80::1%va0"}}));
}

TEST(SelectInterface, AListOfAllKinds) {
    EXPECT_EQ(chosen("10.78.0.0/16,=va0,dummy"),
              (Choices{{"va0.7", "10.78.0.1"}, {"va0", "10.77.0.1"}, {"dummy0", "192.168.9.1"}}));
    EXPECT_EQ(chosen("dum,va"),
              (Choices{{"dummy0", "192.168.9.1"}, {"va0", "10.77.0.1"}, {"va0.7", "10.78.0.1"}}));
    EXPECT_EQ(chosen("=va0,va0.7"), (Choices{{"va0", "10.77.0.1"}, {"va0.7", "10.78.0.1"}}))
        << "the first = counts for all, and both are whole names";
    EXPECT_EQ(chosen("0.0.0.0/0", {"", false}).size(), 4U) << "all with IPv4, loopback too";
}

TEST(SelectInterface, ADeviceNamedTwiceIsOne) {
    EXPECT_EQ(chosen("va0,fd77::/64,10.77.0.1"), kCard);
    EXPECT_EQ(chosen("fd77::1,va0"), (Choices{{"va0", "fd77::1"}}));
}

TEST(SelectInterface, AnExclusion) {  // BOOT-02
    EXPECT_EQ(chosen("^lo,dummy0"), kCard);
    EXPECT_EQ(chosen("^=va0,lo,dummy0", {"", true}), kTagged);
    EXPECT_EQ(chosen("^va,lo", {"", true}), (Choices{{"dummy0", "192.168.9.1"}}));
    EXPECT_EQ(chosen("^10.77.0.0/24,dummy0", {"", true}), kTagged);
    EXPECT_FALSE(selectInterfaces(node(), "^va,dummy", {"", true}).ok()) << "loopback is left";
}

// https://github.com/aws-samples/aws-do-eks/pull/69
TEST(SelectInterface, NothingFollowsTheRouteAndNeverLoopbackBetweenNodes) {  // BOOT-01
    EXPECT_EQ(chosen("", {"10.78.0.1", true}), kTagged);
    EXPECT_EQ(chosen("", {"fd77::1", true}), (Choices{{"va0", "fd77::1"}}));
    EXPECT_EQ(chosen("", {"127.0.0.1", true}), kCard);
    EXPECT_EQ(chosen("", {"127.0.0.1", false}), (Choices{{"lo", "127.0.0.1"}}));
    EXPECT_EQ(chosen("", {"", true}), kCard);
    EXPECT_FALSE(selectInterfaces(node(), "lo", {"", true}).ok());
    EXPECT_EQ(chosen("lo", {"", false}), (Choices{{"lo", "127.0.0.1"}}));
}

TEST(SelectInterface, TheFamilyFollowsTheRoute) {  // BOOT-04
    EXPECT_EQ(chosen("va0", {"fd77::99", true}), (Choices{{"va0", "fd77::1"}}));
}

TEST(SelectInterface, UnknownOnesAreAnsweredWithWhatThereIs) {
    for (const char* wish :
         {"nope", "=va", "10.99.0.1", "10.99.0.0/24", "10.77.0.0/33", "va0,", "=", "bare0",
          "va0,nope", "va0,^lo", "^va0,^lo", "^", "10.77.0.0/-1", "10.77.0.0/", "va0 "}) {
        const auto choices = selectInterfaces(node(), wish, {"10.77.0.1", true});
        ASSERT_FALSE(choices.ok()) << wish;
        EXPECT_EQ(choices.status().code(), Status::Code::kConfiguration) << wish;
    }
    const auto choices = selectInterfaces(node(), "nope", {"10.77.0.1", true});
    EXPECT_EQ(choices.status().what(),
              "no interface or address here matches \"nope\"; there are dummy0 (192.168.9.1), lo "
              "(127.0.0.1, ::1), va0 (10.77.0.1, fd77::1, fe80::1%va0), va0.7 (10.78.0.1), bare0 "
              "(no address)");
}

}  // namespace
}  // namespace isthmus
