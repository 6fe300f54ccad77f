#include "tools/cluster/report_line.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tools/cluster/process.hpp"

namespace isthmus::cluster {
namespace {

constexpr std::size_t kMaxTextBytes = 4096;

/// "r 3 text".
Report parseReport(const std::string& line) {
    Report report;
    report.kind = static_cast<Report::Kind>(line[0]);
    char* rest = nullptr;
    report.node = static_cast<int>(std::strtol(line.c_str() + 1, &rest, 10));
    if (*rest == ' ') report.text = rest + 1;
    return report;
}

}  // namespace

Result<ReportPair> makeReportPair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return systemError("socketpair");
    }
    ReportPair pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
    const int on = 1;
    if (::setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
        return systemError("SO_PASSCRED");
    }
    return pair;
}

void sendReport(int writer, const Report& report) {
    const std::string line = fmt::format("{}{} {}", static_cast<char>(report.kind), report.node,
                                         report.text.substr(0, kMaxTextBytes - 64));
    while (::send(writer, line.data(), line.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

Result<Report> receiveReport(int reader, std::chrono::milliseconds limit) {
    pollfd waiting{reader, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(limit.count()));
    if (ready == 0)
        return Status::timeout(
            fmt::format("the nodes were not complete after {} ms", limit.count()));
    if (ready < 0) return systemError("poll");

    char text[kMaxTextBytes];
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
    iovec piece{text, sizeof text};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(reader, &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) return Status::peerLost("the cluster's keeper ended while it was being made");

    Report report = parseReport(std::string(text, static_cast<std::size_t>(got)));
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_CREDENTIALS) {
        ucred sender{};
        std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
        report.sender = sender.pid;
    }
    return report;
}

}  // namespace isthmus::cluster
