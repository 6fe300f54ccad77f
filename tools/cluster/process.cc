#include "tools/cluster/process.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <thread>

#include "comm/base/unique_fd.hpp"

namespace isthmus::cluster {
namespace {

struct StatLine {
    char state = 'X';
    std::uint64_t startTicks = 0;
};

/// Fields 3 and 22 of /proc/PID/stat, proc(5). The name before them may hold anything but ends at
/// the last parenthesis.
StatLine readStat(pid_t pid) {
    const std::string text = readFile(fmt::format("/proc/{}/stat", pid));
    const std::size_t name = text.rfind(')');
    if (name == std::string::npos) return {};
    std::istringstream fields(text.substr(name + 1));
    StatLine line;
    fields >> line.state;
    std::string skipped;
    for (int field = 4; field <= 21; ++field) fields >> skipped;
    fields >> line.startTicks;
    return line;
}

std::string programPath(const std::string& name) {
    for (const char* folder : {"/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"}) {
        const std::string path = folder + name;
        if (::access(path.c_str(), X_OK) == 0) return path;
    }
    return name;
}

[[noreturn]] void becomeProgram(const std::vector<std::string>& arguments, int in, int err) {
    std::vector<char*> words;
    for (const std::string& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
    words.push_back(nullptr);
    ::dup2(in, STDIN_FILENO);
    ::dup2(err, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::execvp(programPath(arguments[0]).c_str(), words.data());
    ::dprintf(STDERR_FILENO, "%s: %s", arguments[0].c_str(), std::strerror(errno));
    ::_exit(127);
}

std::string readAll(int fd) {
    std::string text;
    char piece[4096];
    for (ssize_t got; (got = ::read(fd, piece, sizeof piece)) != 0;) {
        if (got > 0) text.append(piece, static_cast<std::size_t>(got));
        if (got < 0 && errno != EINTR) break;
    }
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

}  // namespace

ProcessIdentity ProcessIdentity::of(pid_t pid) {
    return {pid, readStat(pid).startTicks};
}

bool ProcessIdentity::isAlive() const {
    if (pid <= 0 || startTicks == 0) return false;
    const StatLine now = readStat(pid);
    return now.startTicks == startTicks && now.state != 'Z' && now.state != 'X';
}

Status killAndWait(const ProcessIdentity& process, std::chrono::milliseconds limit) {
    if (process.isAlive() && ::kill(process.pid, SIGKILL) != 0 && errno != ESRCH) {
        return systemError(fmt::format("kill process {}", process.pid));
    }
    const auto end = std::chrono::steady_clock::now() + limit;
    while (process.isAlive()) {
        if (std::chrono::steady_clock::now() > end) {
            return Status::timeout(fmt::format("process {} did not end within {} ms of SIGKILL",
                                               process.pid, limit.count()));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ::waitpid(process.pid, nullptr, WNOHANG);  // ours only sometimes; else init reaps it
    return {};
}

Status runProgram(const std::vector<std::string>& arguments, const std::string& input) {
    int in[2];
    int err[2];
    if (::pipe2(in, O_CLOEXEC) != 0) return systemError("pipe");
    UniqueFd inRead(in[0]);
    UniqueFd inWrite(in[1]);
    if (::pipe2(err, O_CLOEXEC) != 0) return systemError("pipe");
    UniqueFd errRead(err[0]);
    UniqueFd errWrite(err[1]);
    const pid_t child = ::fork();
    if (child < 0) return systemError("fork");
    if (child == 0) becomeProgram(arguments, inRead.get(), errWrite.get());
    inRead.reset();
    errWrite.reset();
    // Inputs here are a few KB, so a pipe holds them whole and neither side can wait for the other.
    std::size_t given = 0;
    while (given < input.size()) {
        const ssize_t put = ::write(inWrite.get(), input.data() + given, input.size() - given);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) break;
        given += static_cast<std::size_t>(put);
    }
    inWrite.reset();
    const std::string said = readAll(errRead.get());
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        return Status::unsupported(fmt::format("{} (Debian: package iproute2)", said));
    }
    return Status::unsupported(fmt::format("{}: {}", arguments[0], said));
}

std::string readFile(const std::string& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return file.isOpen() ? readAll(file.get()) : std::string();
}

Status writeFile(const std::string& path, const std::string& text) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file.isOpen()) return systemError(path);
    const ssize_t put = ::write(file.get(), text.data(), text.size());
    if (put != static_cast<ssize_t>(text.size())) return systemError(path);
    return {};
}

Status systemError(const std::string& what) {
    const int cause = errno;
    const std::string text = what + ": " + std::strerror(cause);
    if (cause == EPERM || cause == EACCES || cause == ENOSYS || cause == EINVAL) {
        return Status::unsupported(text);
    }
    return Status::resource(text);
}

}  // namespace isthmus::cluster
