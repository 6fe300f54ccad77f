#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace isthmus::test {

/// Runs `body` in a forked child, which must return 0, and returns its exit status (-1: killed by a
/// signal). The child is ended after ten seconds.
template <typename Body>
int runInChild(Body body) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(10);
        ::_exit(body());
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

inline std::ptrdiff_t openFds() {
    const std::filesystem::directory_iterator fds("/proc/self/fd");
    return std::distance(begin(fds), end(fds));
}

}  // namespace isthmus::test
