#include "tools/cli/exit_code.hpp"

#include <fmt/core.h>

#include <cstdio>

namespace isthmus::cli {

ExitCode exitCodeOf(const Status& status) {
    switch (status.code()) {
    case Status::Code::kOk:
        return ExitCode::kOk;
    case Status::Code::kInvalidArgument:
        return ExitCode::kUsage;
    case Status::Code::kMismatch:
        return ExitCode::kMismatch;
    case Status::Code::kTimeout:
        return ExitCode::kTimeout;
    case Status::Code::kPeerLost:
    case Status::Code::kAborted:
        return ExitCode::kPeerLost;
    case Status::Code::kConfiguration:
        return ExitCode::kConfiguration;
    case Status::Code::kResource:
    case Status::Code::kUnsupported:
        return ExitCode::kUnhealthy;
    case Status::Code::kInternal:
        return ExitCode::kInternal;
    }
    return ExitCode::kInternal;
}

int report(const char* subcommand, const Status& status) {
    if (!status.ok()) fmt::print(stderr, "isthmus {}: {}\n", subcommand, status.what());
    return asInt(exitCodeOf(status));
}

}  // namespace isthmus::cli
