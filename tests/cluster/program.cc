#include "tests/cluster/program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace isthmus::test {
namespace {

std::string contentOf(int fd) {
    std::string text;
    char piece[65536];
    for (off_t at = 0;;) {
        const ssize_t got = ::pread(fd, piece, sizeof piece, at);
        if (got <= 0) return text;
        text.append(piece, static_cast<std::size_t>(got));
        at += got;
    }
}

// Several processes may write to it: without O_APPEND two that write at once, at an offset that
// the kernel does not guard for files in memory, lose a line.
int fileInMemory(const char* name) {
    const int fd = ::memfd_create(name, MFD_CLOEXEC);
    ::fcntl(fd, F_SETFL, O_APPEND);
    return fd;
}

}  // namespace

std::string isthmusProgram() {
    return ISTHMUS_PROGRAM;
}

std::string streamProgram() {
    return STREAM_PROGRAM;
}

Program::Program(const std::vector<std::string>& arguments) {
    outputFd_ = fileInMemory("output");
    errorFd_ = fileInMemory("error");
    std::vector<char*> words;
    for (const std::string& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(outputFd_, STDOUT_FILENO);
    ::dup2(errorFd_, STDERR_FILENO);
    ::setpgid(0, 0);
    ::execvp(words[0], words.data());
    ::_exit(125);
}

Program::~Program() {
    if (!hasEnded_) {
        signal(SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    ::close(outputFd_);
    ::close(errorFd_);
}

void Program::signal(int number) const {
    ::kill(pid_, number);
}

int Program::wait(std::chrono::milliseconds limit) {
    if (hasEnded_) return exitCode_;
    int status = 0;
    hasEnded_ = becomes([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, limit);
    if (hasEnded_) exitCode_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return exitCode_;
}

std::string Program::output() const {
    return contentOf(outputFd_);
}

std::string Program::error() const {
    return contentOf(errorFd_);
}

Ended isthmus(const std::vector<std::string>& arguments) {
    std::vector<std::string> words{isthmusProgram()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Program program(words);
    const int exitCode = program.wait();
    return {exitCode, program.output(), program.error()};
}

bool becomes(const std::function<bool()>& claim, std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
        if (claim()) return true;
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

bool isGone(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t name = text.rfind(')');
    return name == text.npos || name + 2 >= text.size() || text[name + 2] == 'Z' ||
           text[name + 2] == 'X';
}

std::vector<std::string> linesOf(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

Folder::Folder() {
    char name[] = "/tmp/isthmus-test-XXXXXX";
    if (::mkdtemp(name) != nullptr) path_ = name;
}

Folder::~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::vector<pid_t> Folder::numbersIn(const std::string& name) const {
    std::ifstream file(path_ + "/" + name);
    std::vector<pid_t> numbers;
    for (pid_t number = 0; file >> number;) numbers.push_back(number);
    return numbers;
}

}  // namespace isthmus::test
