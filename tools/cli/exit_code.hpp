#pragma once

#include <isthmus/status.hpp>

namespace isthmus::cli {

/// What the `isthmus` program tells its caller. `run` and `cluster exec` pass on the code of what
/// they started instead.
enum class ExitCode : int {
    kOk = 0,
    kUsage = 1,
    kUnhealthy = 2,  ///< also: infeasible here
    kPeerLost = 3,
    kTimeout = 4,
    kMismatch = 5,
    kConfiguration = 6,  ///< also: authentication
    kInternal = 70,      ///< EX_SOFTWARE of sysexits.h
};

constexpr int asInt(ExitCode code) {
    return static_cast<int>(code);
}

/// The exit code that stands for `status`.
ExitCode exitCodeOf(const Status& status);

/// Prints "isthmus SUBCOMMAND: text" to standard error and returns the code that fits.
int report(const char* subcommand, const Status& status);

}  // namespace isthmus::cli
