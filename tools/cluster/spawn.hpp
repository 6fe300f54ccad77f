#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include <isthmus/status.hpp>

#include "tools/cluster/namespaces.hpp"

namespace isthmus::cluster {

/// A program to start and what it finds.
struct Command {
    std::vector<std::string> arguments;  ///< the first is looked up in PATH
    std::vector<std::pair<std::string, std::string>> environment;  ///< on top of ours
    std::vector<std::string> hiddenVariables;                      ///< of ours, taken away
    int input = 0;
    int output = 1;
    int error = 2;
    std::vector<int> inheritedFds;    ///< open in the program under the same number
    bool hasOwnProcessGroup = false;  ///< its process number names the group
};

/// Starts it, in `where` if given (a node) with the same working folder, as a child of the caller:
/// it dies by SIGKILL with the thread that called. Returns when the program runs.
/// Errors: kInvalidArgument (no such program, not executable; see exitCodeOfFailure),
/// kUnsupported, kResource.
Result<pid_t> spawn(const Command& command, const Namespaces* where);

/// 127 when the program was not found, 126 when it could not run: what shells return.
int exitCodeOfFailure(const std::string& program);

/// 128 + signal or the exit status, from wait(2).
int shellCode(int waitStatus);

}  // namespace isthmus::cluster
