#include "comm/transport/transport_choice.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(TransportChoice, SaysWhatCarriesMessages) {
    struct Case {
        const char* text;
        bool sharesMemory;
        const char* between;
        const char* device;
    };
    for (const Case& each :
         {Case{"auto", true, "tcp", ""}, Case{"shm,tcp", true, "tcp", ""},
          Case{"tcp,shm", true, "tcp", ""}, Case{"shm", true, "", ""},
          Case{"tcp", false, "tcp", ""}, Case{"^shm", false, "tcp", ""}, Case{"^tcp", true, "", ""},
          Case{"^ucx", true, "tcp", ""}, Case{"ucx", false, "ucx", ""},
          Case{"shm,ucx@tcp", true, "ucx", "tcp"}, Case{"ucx@posix+cma", false, "ucx", "posix+cma"},
          Case{"^ofi", true, "tcp", ""}, Case{"ofi", false, "ofi", ""},
          Case{"shm,ofi@tcp;ofi_rxm", true, "ofi", "tcp;ofi_rxm"}}) {
        const auto choice = parseTransports(each.text);
        ASSERT_TRUE(choice.ok()) << each.text << ": " << choice.status().what();
        EXPECT_EQ(choice->sharesMemory, each.sharesMemory) << each.text;
        EXPECT_EQ(choice->between, each.between) << each.text;
        EXPECT_EQ(choice->device, each.device) << each.text;
    }
}

TEST(TransportChoice, SaysWhatIsWrong) {
    for (const char* text : {"", "tpc", "shm,", "auto,tcp", "^", "^shm,tcp", "^tpc", "tcp,ucx",
                             "ucx,ofi", "tcp@eth0", "shm@1", "UCX"}) {
        const auto choice = parseTransports(text);
        ASSERT_FALSE(choice.ok()) << text;
        EXPECT_EQ(choice.status().code(), Status::Code::kConfiguration);
        EXPECT_NE(choice.status().what().find(text), std::string::npos);
    }
}

}  // namespace
}  // namespace isthmus
