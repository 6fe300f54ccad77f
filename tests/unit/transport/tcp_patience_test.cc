// When the kernel gives a connection up.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "comm/base/unique_fd.hpp"
#include "comm/transport/tcp/tcp_door.hpp"

namespace isthmus {
namespace {

int optionOf(int fd, int name) {
    int value = -1;
    socklen_t bytes = sizeof(value);
    EXPECT_EQ(::getsockopt(fd, IPPROTO_TCP, name, &value, &bytes), 0);
    return value;
}

// Where TCP_USER_TIMEOUT is set a connection ends once nothing came for that long and one probe is
// unanswered. Probes that begin only then make one lost packet a lost rank.
TEST(TcpPatience, OneLostProbeIsNoLostPeer) {
    for (const int seconds : {3, 10, 60}) {
        const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
        TcpOptions options;
        options.userTimeout = std::chrono::seconds(seconds);
        prepareSocket(fd.get(), options);
        EXPECT_EQ(optionOf(fd.get(), TCP_USER_TIMEOUT), seconds * 1000);
        const int idle = optionOf(fd.get(), TCP_KEEPIDLE);
        const int apart = optionOf(fd.get(), TCP_KEEPINTVL);
        EXPECT_GE((seconds - idle) / apart, 2) << "probes, of " << seconds << " s";
        // While the peer's window is closed there is no user timeout, and the count ends it.
        EXPECT_GE(idle + apart * optionOf(fd.get(), TCP_KEEPCNT), seconds);
    }
}

}  // namespace
}  // namespace isthmus
