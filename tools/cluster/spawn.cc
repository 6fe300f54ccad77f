#include "tools/cluster/spawn.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "comm/base/knobs.hpp"

namespace isthmus::cluster {
namespace {

/// What the starting process tells: first the child's number, then, only if it failed, why.
struct Outcome {
    enum class Stage : int { kStarted, kEnter, kFolder, kExec };
    Stage stage = Stage::kStarted;
    int value = 0;  ///< process number, or errno
};

[[noreturn]] void fail(int reportFd, Outcome::Stage stage) {
    const Outcome outcome{stage, errno};
    (void)!::write(reportFd, &outcome, sizeof outcome);
    ::_exit(127);
}

void placeStreams(const Command& command) {
    // Copies above 2 first, so that no stream is overwritten before it is used.
    const int input = ::fcntl(command.input, F_DUPFD_CLOEXEC, 3);
    const int output = ::fcntl(command.output, F_DUPFD_CLOEXEC, 3);
    const int error = ::fcntl(command.error, F_DUPFD_CLOEXEC, 3);
    ::dup2(input, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(error, STDERR_FILENO);
}

void resetSignals() {
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become(const Command& command, int reportFd) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (command.hasOwnProcessGroup) ::setpgid(0, 0);
    placeStreams(command);
    for (const int fd : command.inheritedFds) ::fcntl(fd, F_SETFD, 0);
    for (const std::string& name : command.hiddenVariables) ::unsetenv(name.c_str());
    for (const auto& [name, value] : command.environment) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> words;
    for (const std::string& each : command.arguments)
        words.push_back(const_cast<char*>(each.c_str()));
    words.push_back(nullptr);
    resetSignals();
    ::execvp(words[0], words.data());
    fail(reportFd, Outcome::Stage::kExec);
}

/// Runs in a process of its own: entering a PID namespace only concerns later children, and the one
/// it makes becomes our caller's child (CLONE_PARENT).
[[noreturn]] void enterAndStart(const Command& command, const Namespaces& where, int reportFd) {
    char folder[PATH_MAX];
    if (::getcwd(folder, sizeof folder) == nullptr) fail(reportFd, Outcome::Stage::kFolder);
    if (!where.enter().ok()) fail(reportFd, Outcome::Stage::kEnter);
    if (::chdir(folder) != 0) fail(reportFd, Outcome::Stage::kFolder);
    const pid_t child = forkInto(CLONE_PARENT);
    if (child < 0) fail(reportFd, Outcome::Stage::kEnter);
    if (child == 0) become(command, reportFd);
    const Outcome started{Outcome::Stage::kStarted, child};
    (void)!::write(reportFd, &started, sizeof started);
    ::_exit(0);
}

Status explain(const Outcome& outcome, const Command& command) {
    const char* reason = std::strerror(outcome.value);
    switch (outcome.stage) {
    case Outcome::Stage::kExec:
        return Status::invalidArgument(fmt::format("{}: {}", command.arguments[0], reason));
    case Outcome::Stage::kFolder:
        return Status::resource(fmt::format("the working folder: {}", reason));
    case Outcome::Stage::kEnter:
    case Outcome::Stage::kStarted:
        break;
    }
    return Status::unsupported(fmt::format("enter the node: {}", reason));
}

}  // namespace

Result<pid_t> spawn(const Command& command, const Namespaces* where) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return systemError("pipe");
    const UniqueFd read(ends[0]);
    UniqueFd write(ends[1]);
    pid_t child = ::fork();
    if (child < 0) return systemError("fork");
    if (child == 0) {
        if (where == nullptr) become(command, write.get());
        enterAndStart(command, *where, write.get());
    }
    write.reset();
    Status failure;
    if (where != nullptr) {
        while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
        }
        child = -1;
    }
    for (Outcome outcome; ::read(read.get(), &outcome, sizeof outcome) == sizeof outcome;) {
        if (outcome.stage == Outcome::Stage::kStarted) {
            child = outcome.value;
        } else {
            failure = explain(outcome, command);
        }
    }
    if (!failure.ok()) {
        if (child > 0) ::waitpid(child, nullptr, 0);
        return failure;
    }
    if (child < 0) return Status::unsupported("the node ended while a program was started in it");
    if (command.hasOwnProcessGroup) ::setpgid(child, child);  // whichever of the two comes first
    return child;
}

int exitCodeOfFailure(const std::string& program) {
    constexpr int kNotFound = 127;
    constexpr int kNotExecutable = 126;
    if (program.find('/') != std::string::npos) {
        return ::access(program.c_str(), F_OK) == 0 ? kNotExecutable : kNotFound;
    }
    const std::string path = environmentVariable("PATH").value_or("/usr/bin:/bin");
    for (std::size_t from = 0; from <= path.size();) {
        const std::size_t end = std::min(path.find(':', from), path.size());
        if (::access((path.substr(from, end - from) + "/" + program).c_str(), F_OK) == 0)
            return kNotExecutable;
        from = end + 1;
    }
    return kNotFound;
}

int shellCode(int waitStatus) {
    return WIFSIGNALED(waitStatus) ? 128 + WTERMSIG(waitStatus) : WEXITSTATUS(waitStatus);
}

}  // namespace isthmus::cluster
