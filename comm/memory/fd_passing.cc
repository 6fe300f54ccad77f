#include "comm/memory/fd_passing.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "comm/base/assert.hpp"
#include "comm/base/descriptors.hpp"

namespace isthmus {

namespace {

constexpr std::size_t kMaxPayload = 4096;  // a stream socket takes so little whole or not at all
constexpr int kInterruptions = 1000;       // then something is wrong with this process

struct ControlSpace {
    alignas(cmsghdr) char bytes[CMSG_SPACE(kMaxPassedFds * sizeof(int))] = {};
};

Status failed(const char* what, int error) {
    return Status::peerLost(std::string(what) +
                            " over a local socket: " + std::generic_category().message(error));
}

bool wouldBlock(int error) {
    return error == EAGAIN || error == EWOULDBLOCK;
}

std::vector<UniqueFd> takeFds(msghdr& message) {
    std::vector<UniqueFd> fds;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
            fds.emplace_back(fd);
        }
    }
    return fds;
}

}  // namespace

Result<bool> sendFds(int socket, std::span<const std::byte> payload, std::span<const int> fds) {
    ISTHMUS_ASSERT(!payload.empty() && payload.size() <= kMaxPayload);
    ISTHMUS_ASSERT(fds.size() <= kMaxPassedFds);
    ControlSpace control;
    iovec bytes{const_cast<std::byte*>(payload.data()), payload.size()};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* const part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(part), fds.data(), fds.size_bytes());
    }
    for (int attempt = 0; attempt < kInterruptions; ++attempt) {
        const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
        if (sent == static_cast<ssize_t>(payload.size())) return true;
        if (sent >= 0) return Status::internal("a local socket took a message in parts");
        if (wouldBlock(errno)) return false;
        if (errno != EINTR) return failed("sending descriptors", errno);
    }
    return failed("sending descriptors", EINTR);
}

Result<std::optional<PassedFds>> receiveFds(int socket, std::span<std::byte> payload) {
    ISTHMUS_ASSERT(!payload.empty());
    for (int attempt = 0; attempt < kInterruptions; ++attempt) {
        ControlSpace control;
        iovec bytes{payload.data(), payload.size()};
        msghdr message{};
        message.msg_iov = &bytes;
        message.msg_iovlen = 1;
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        const ssize_t received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
        if (received >= 0) {
            PassedFds passed{static_cast<std::size_t>(received), takeFds(message)};
            if ((message.msg_flags & MSG_CTRUNC) != 0) {
                warnOutOfDescriptors("shared memory of a peer was not received");
                return Status::mismatch("descriptors over a local socket were cut off after " +
                                        std::to_string(passed.fds.size()));
            }
            return std::optional<PassedFds>(std::move(passed));
        }
        if (wouldBlock(errno)) return std::optional<PassedFds>();
        if (errno != EINTR) return failed("receiving descriptors", errno);
    }
    return failed("receiving descriptors", EINTR);
}

}  // namespace isthmus
