#include "comm/bootstrap/host_port.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(HostPort, ReadsNamesAddressesAndLocalNames) {
    EXPECT_EQ(*parseHostPort("node-a:29500"), (HostPort{"node-a", 29500}));
    EXPECT_EQ(*parseHostPort("10.77.0.1:1"), (HostPort{"10.77.0.1", 1}));
    EXPECT_EQ(*parseHostPort("[fd77::1]:65535"), (HostPort{"fd77::1", 65535}));
    EXPECT_EQ(*parseHostPort("[fe80::1%eth0]:80"), (HostPort{"fe80::1%eth0", 80}));
    EXPECT_EQ(*parseHostPort("@isthmus-1"), (HostPort{"@isthmus-1", 0}));
}

TEST(HostPort, PrintsWhatItReads) {
    for (const char* text : {"node-a:29500", "[fd77::1]:65535", "[fe80::1%eth0]:80", "@x"}) {
        EXPECT_EQ(toText(*parseHostPort(text)), text);
    }
}

TEST(HostPort, SaysWhatIsWrong) {
    const std::pair<const char*, const char*> wrong[] = {
        {"node-a", "no port"},
        {"[fd77::1]", "no port"},
        {"fd77::1:80", "ambiguous"},
        {":80", "no host"},
        {"node:123456", "out of range"},
        {"node:99999999999999999999999", "out of range"},
        {"node:", "not a port"},
        {"node:8x", "not a port"},
        {"node:-1", "not a port"},
        {"@", "local name"},
        {"", "no port"},
    };
    for (const auto& [text, reason] : wrong) {
        const auto parsed = parseHostPort(text);
        ASSERT_FALSE(parsed.ok()) << text;
        EXPECT_EQ(parsed.status().code(), Status::Code::kConfiguration);
        EXPECT_NE(parsed.status().what().find(reason), std::string::npos)
            << text << ": " << parsed.status().what();
    }
    EXPECT_FALSE(parseHostPort("@" + std::string(200, 'a')).ok());
}

TEST(PortRange, IsAPairAPortOrNothing) {
    EXPECT_EQ((*parsePortRange("5000-5015")).ports(), 16);
    EXPECT_EQ((*parsePortRange("5000")).ports(), 1);
    EXPECT_EQ((*parsePortRange("")).ports(), 0);
    for (const char* text : {"5015-5000", "0-10", "a-b", "5000-", "-5000", "5000-70000"}) {
        EXPECT_FALSE(parsePortRange(text).ok()) << text;
    }
}

}  // namespace
}  // namespace isthmus
