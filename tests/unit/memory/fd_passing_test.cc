#include "comm/memory/fd_passing.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "comm/memory/arena.hpp"
#include "tests/unit/memory/child.hpp"

namespace isthmus {
namespace {

struct SocketPair {
    explicit SocketPair(int flags = 0) {
        int ends[2] = {-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, ends), 0);
        left.reset(ends[0]);
        right.reset(ends[1]);
    }
    UniqueFd left;
    UniqueFd right;
};

const std::array<std::byte, 3> kPayload = {std::byte(1), std::byte(2), std::byte(3)};

TEST(FdPassing, CarriesPayloadAndDescriptorsBothCloseOnExec) {
    SocketPair sockets;
    const UniqueFd file(::memfd_create("passed", MFD_CLOEXEC));
    ASSERT_EQ(::pwrite(file.get(), "abc", 3, 0), 3);
    const int fds[] = {file.get(), file.get()};
    const auto sent = sendFds(sockets.left.get(), kPayload, fds);
    ASSERT_TRUE(sent.ok() && *sent);
    std::array<std::byte, 16> payload{};
    auto received = receiveFds(sockets.right.get(), payload);
    ASSERT_TRUE(received.ok() && *received);
    EXPECT_EQ((*received)->payloadBytes, 3u);
    EXPECT_EQ(payload[2], std::byte(3));
    ASSERT_EQ((*received)->fds.size(), 2u);
    for (const UniqueFd& fd : (*received)->fds) {
        char text[3];
        EXPECT_EQ(::pread(fd.get(), text, 3, 0), 3);
        EXPECT_EQ(std::memcmp(text, "abc", 3), 0);
        EXPECT_TRUE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC);
    }
}

TEST(FdPassing, DoesNotWaitOnSocketsThatDoNotBlock) {
    SocketPair sockets(SOCK_NONBLOCK);
    std::array<std::byte, 16> payload{};
    const auto nothing = receiveFds(sockets.right.get(), payload);
    ASSERT_TRUE(nothing.ok());
    EXPECT_FALSE(nothing->has_value());
    bool isFull = false;
    for (int i = 0; i < 100000 && !isFull; ++i) {
        const auto sent = sendFds(sockets.left.get(), kPayload, {});
        ASSERT_TRUE(sent.ok());
        isFull = !*sent;
    }
    EXPECT_TRUE(isFull);
}

TEST(FdPassing, TellsThatThePeerHasClosed) {
    SocketPair sockets;
    sockets.left.reset();
    std::array<std::byte, 16> payload{};
    const auto received = receiveFds(sockets.right.get(), payload);
    ASSERT_TRUE(received.ok() && *received);
    EXPECT_EQ((*received)->payloadBytes, 0u);
    EXPECT_EQ(sendFds(sockets.right.get(), kPayload, {}).status().code(), Status::Code::kPeerLost);
}

TEST(FdPassing, ClosesWhatCameWhenDescriptorsAreCutOff) {
    EXPECT_EQ(test::runInChild([] {
                  SocketPair sockets;
                  const int fds[] = {0, 0, 0, 0};
                  if (!sendFds(sockets.left.get(), kPayload, fds).ok()) return 1;
                  const auto before = test::openFds();
                  // Room for two: the lowest free numbers are taken first.
                  const UniqueFd lowest(::dup(0));
                  const rlim_t most = static_cast<rlim_t>(lowest.get()) + 3;
                  const rlimit limit{most, most};
                  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
                  std::array<std::byte, 16> payload{};
                  const auto received = receiveFds(sockets.right.get(), payload);
                  if (received.status().code() != Status::Code::kMismatch) return 3;
                  return test::openFds() == before + 1 ? 0 : 4;
              }),
              0);
}

TEST(FdPassing, TwoProcessesShareAnArena) {
    SocketPair sockets;
    auto arena = Arena::create(std::size_t(4) << 20);
    ASSERT_TRUE(arena.ok());
    const auto block = (*arena)->allocate(4096);
    ASSERT_TRUE(block.ok());
    auto* const bytes = static_cast<std::byte*>(*block);
    bytes[0] = std::byte(17);
    const std::uint64_t offset = *(*arena)->offsetOf(bytes, 4096);
    const int fd = (*arena)->fd();
    std::array<std::byte, sizeof offset> payload;
    std::memcpy(payload.data(), &offset, sizeof offset);
    const auto fdsBefore = test::openFds();
    ASSERT_TRUE(sendFds(sockets.left.get(), payload, {&fd, 1}).ok());
    EXPECT_EQ(test::runInChild([&] {
                  ::munmap((*arena)->base(), (*arena)->capacityBytes());  // what fork inherited
                  std::array<std::byte, sizeof offset> told;
                  auto received = receiveFds(sockets.right.get(), told);
                  if (!received.ok() || (*received)->fds.size() != 1) return 1;
                  const auto peer = PeerArena::map(std::move((*received)->fds[0]));
                  if (!peer.ok()) return 2;
                  std::uint64_t where = 0;
                  std::memcpy(&where, told.data(), sizeof where);
                  std::byte* const shared = (*peer)->base() + where;
                  if (shared[0] != std::byte(17)) return 3;
                  shared[4095] = std::byte(18);
                  return 0;
              }),
              0);
    EXPECT_EQ(bytes[4095], std::byte(18));
    EXPECT_EQ(test::openFds(), fdsBefore);
}

}  // namespace
}  // namespace isthmus
