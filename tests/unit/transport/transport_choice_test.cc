#include "comm/transport/transport_choice.hpp"

#include <gtest/gtest.h>

#include <ostream>

namespace isthmus {

static void PrintTo(const TransportChoice::Between& between, std::ostream* out) {
    *out << between.name << "@" << between.device;
}

namespace {

using Between = std::vector<TransportChoice::Between>;

TEST(TransportChoice, SaysWhatCarriesMessages) {
    struct Case {
        const char* text;
        bool sharesMemory;
        Between between;
    };
    const Between tcp = {{"tcp", ""}};
    const Case cases[] = {
        {"auto", true, tcp},
        {"shm,tcp", true, tcp},
        {"tcp,shm", true, tcp},
        {"shm", true, {}},
        {"tcp", false, tcp},
        {"^shm", false, tcp},
        {"^tcp", true, {}},
        {"^ucx", true, tcp},
        {"^ofi,ucx", true, tcp},
        {"ucx", false, {{"ucx", ""}}},
        {"shm,ucx@tcp", true, {{"ucx", "tcp"}}},
        {"ucx@posix+cma", false, {{"ucx", "posix+cma"}}},
        {"shm,ofi@tcp;ofi_rxm", true, {{"ofi", "tcp;ofi_rxm"}}},
        {"shm,ucx,tcp", true, {{"ucx", ""}, {"tcp", ""}}},
        {"tcp,shm,ucx", true, {{"tcp", ""}, {"ucx", ""}}},
        {"ofi@efa,ucx@rc,tcp@eth0+eth1",
         false,
         {{"ofi", "efa"}, {"ucx", "rc"}, {"tcp", "eth0+eth1"}}},
        {"tcp@10.77.0.0/24", false, {{"tcp", "10.77.0.0/24"}}},
    };
    for (const Case& each : cases) {
        const auto choice = parseTransports(each.text);
        ASSERT_TRUE(choice.ok()) << each.text << ": " << choice.status().what();
        EXPECT_EQ(choice->sharesMemory, each.sharesMemory) << each.text;
        EXPECT_EQ(choice->between, each.between) << each.text;
    }
}

TEST(TransportChoice, SaysWhatIsWrong) {
    for (const char* text : {"", "tpc", "shm,", "auto,tcp", "^", "^shm,tcp", "^tpc", "^tcp,^shm",
                             "tcp,tcp", "ucx,tcp,ucx@tcp", "ucx@", "tcp@", "shm@1", "UCX", "@"}) {
        const auto choice = parseTransports(text);
        ASSERT_FALSE(choice.ok()) << text;
        EXPECT_EQ(choice.status().code(), Status::Code::kConfiguration);
        EXPECT_NE(choice.status().what().find(text), std::string::npos);
    }
}

}  // namespace
}  // namespace isthmus
