#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace isthmus::test {

/// The isthmus program of this build (a path, see meson.build).
std::string isthmusProgram();

/// The sender and receiver of this folder.
std::string streamProgram();

/// A running program whose output goes to memory. Killed when this ends.
class Program {
public:
    explicit Program(const std::vector<std::string>& arguments);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    pid_t pid() const { return pid_; }
    void signal(int number) const;

    /// The shell's exit code; -1 when it does not end within `limit`.
    int wait(std::chrono::milliseconds limit = std::chrono::seconds(20));

    std::string output() const;
    std::string error() const;

private:
    pid_t pid_ = -1;
    int outputFd_ = -1;
    int errorFd_ = -1;
    int exitCode_ = -1;
    bool hasEnded_ = false;
};

struct Ended {
    int exitCode;
    std::string output;
    std::string error;
};

/// `isthmus ARGUMENTS` to its end.
Ended isthmus(const std::vector<std::string>& arguments);

/// Looks every few milliseconds; false when it was not so within `limit`.
bool becomes(const std::function<bool()>& claim,
             std::chrono::milliseconds limit = std::chrono::seconds(5));

/// Neither running nor sleeping; a zombie is gone.
bool isGone(pid_t pid);

std::vector<std::string> linesOf(const std::string& text);

/// A folder under /tmp that goes with this.
class Folder {
public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const std::string& path() const { return path_; }

    /// The numbers in its file `name`, one a line; empty when there is none.
    std::vector<pid_t> numbersIn(const std::string& name) const;

private:
    std::string path_;
};

}  // namespace isthmus::test
