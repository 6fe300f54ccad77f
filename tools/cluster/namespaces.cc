#include "tools/cluster/namespaces.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace isthmus::cluster {
namespace {

bool isSameFile(const std::string& one, const std::string& other) {
    struct stat first {};
    struct stat second {};
    return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
           first.st_ino == second.st_ino && first.st_dev == second.st_dev;
}

}  // namespace

Result<Namespaces> Namespaces::of(const ProcessIdentity& process, Which which) {
    // The user namespace first: it gives the right to enter the others.
    std::vector<std::string> kinds{"user", "net"};
    if (which == Which::kAll) kinds.insert(kinds.end(), {"uts", "ipc", "mnt", "pid"});
    Namespaces result;
    for (const std::string& kind : kinds) {
        const std::string path = fmt::format("/proc/{}/ns/{}", process.pid, kind);
        if (kind == "user" && isSameFile(path, "/proc/self/ns/user")) continue;  // EINVAL otherwise
        UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!fd.isOpen() && process.isAlive()) return systemError(path);
        result.held_.push_back({kind, std::move(fd)});
    }
    if (!process.isAlive()) {
        return Status::peerLost(fmt::format("the node's process {} is gone", process.pid));
    }
    return result;
}

Status Namespaces::enter() const {
    for (const Held& each : held_) {
        if (::setns(each.fd.get(), 0) != 0) return systemError("setns " + each.kind);
    }
    return {};
}

pid_t forkInto(unsigned long flags) {
    return static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, 0));
}

Status becomeRootInside(unsigned userId, unsigned groupId) {
    // user_namespaces(7): without privilege the one line maps oneself, after giving up setgroups.
    ISTHMUS_TRY(writeFile("/proc/self/setgroups", "deny"));
    ISTHMUS_TRY(writeFile("/proc/self/uid_map", fmt::format("0 {} 1", userId)));
    return writeFile("/proc/self/gid_map", fmt::format("0 {} 1", groupId));
}

}  // namespace isthmus::cluster
