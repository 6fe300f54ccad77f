#include "comm/transport/ofi/ofi_local_name.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

#include "comm/bootstrap/authenticate.hpp"

namespace isthmus {

namespace {

struct Names {
    std::mutex mutex;
    std::vector<std::string> ours;
};

Names& names() {
    static Names* const made = new Names;  // needed after the end of main()
    return *made;
}

/// What the names of all processes of this PID namespace begin with.
std::string prefix() {
    struct stat inode {};
    if (::stat("/proc/self/ns/pid", &inode) != 0) inode.st_ino = 0;
    return "isthmus-ofi-" + std::to_string(inode.st_ino) + "-";
}

/// Of forked children only the parent's files are known here, and those stay.
void removeOurs() {
    const std::lock_guard lock(names().mutex);
    const std::string mine = prefix() + std::to_string(::getpid()) + "-";
    for (const std::string& name : names().ours) {
        if (name.starts_with(mine)) ::shm_unlink(name.c_str());
    }
}

bool isGone(std::string_view rest) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
    if (error != std::errc() || end == rest.data() + rest.size() || *end != '-') return false;
    return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string newLocalName() {
    std::string name = prefix() + std::to_string(::getpid()) + "-";
    for (const std::byte each : makeNonce()) {
        std::array<char, 3> digits{};
        std::snprintf(digits.data(), digits.size(), "%02x", std::to_integer<unsigned>(each));
        name += digits.data();
    }
    const std::lock_guard lock(names().mutex);
    if (names().ours.empty()) std::atexit(removeOurs);
    names().ours.push_back(name);
    return name;
}

void sweepLocalNames() {
    const std::string start = prefix();
    std::error_code failure;
    for (const auto& file : std::filesystem::directory_iterator("/dev/shm", failure)) {
        const std::string name = file.path().filename();
        if (name.starts_with(start) && isGone(std::string_view(name).substr(start.size()))) {
            ::shm_unlink(name.c_str());
        }
    }
}

}  // namespace isthmus
