#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <isthmus/status.hpp>

namespace isthmus::cluster {

/// A process that may be gone: the start time tells it from a later one with the same number.
struct ProcessIdentity {
    pid_t pid = 0;
    std::uint64_t startTicks = 0;

    /// startTicks 0 when there is no such process.
    static ProcessIdentity of(pid_t pid);

    /// Runs or sleeps; a zombie is not alive.
    bool isAlive() const;
};

/// Kills it and waits until it is gone. kTimeout when it does not go.
Status killAndWait(const ProcessIdentity& process, std::chrono::milliseconds limit);

/// Runs a program of the system (found in the sbin folders too), gives it `input` and waits.
/// Fails with what it wrote to standard error. Safe in a process that has just been forked.
Status runProgram(const std::vector<std::string>& arguments, const std::string& input);

/// The text of a small file; empty when it cannot be read.
std::string readFile(const std::string& path);

Status writeFile(const std::string& path, const std::string& text);

/// "what: reason" from errno.
Status systemError(const std::string& what);

}  // namespace isthmus::cluster
