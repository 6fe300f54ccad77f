#include "comm/bootstrap/host_identity.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace isthmus {
namespace {

TEST(HostIdentity, IsOursAndGoesThroughBytes) {
    const auto here = thisHost();
    ASSERT_TRUE(here.ok()) << here.status().what();
    EXPECT_EQ(here->processId, ::getpid());
    EXPECT_EQ(here->bootId.size(), 36u);
    const auto again = hostIdentityFrom(toBytes(*here));
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, *here);
    Bytes cut = toBytes(*here);
    cut.pop_back();
    EXPECT_FALSE(hostIdentityFrom(cut).ok());
}

// https://github.com/NVIDIA/nccl/pull/248
TEST(HostIdentity, NamesAndProcessesDecideNothing) {  // BOOT-06
    const auto here = *thisHost();
    auto other = here;
    other.hostName = "elsewhere";
    other.processId = 1;
    EXPECT_TRUE(mayShareMemory(here, other));
    EXPECT_EQ(describe(other), "process 1 on elsewhere");
}

TEST(HostIdentity, EveryOtherDifferenceDoes) {
    const auto here = *thisHost();
    for (const auto field :
         {&HostIdentity::networkNamespace, &HostIdentity::pidNamespace, &HostIdentity::ipcNamespace,
          &HostIdentity::mountNamespace, &HostIdentity::sharedMemoryDevice}) {
        auto other = here;
        other.*field += 1;
        EXPECT_FALSE(mayShareMemory(here, other));
    }
    auto other = here;
    other.bootId.back() = other.bootId.back() == '0' ? '1' : '0';
    EXPECT_FALSE(mayShareMemory(here, other)) << "one character is enough";
}

}  // namespace
}  // namespace isthmus
